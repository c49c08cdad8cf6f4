package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"log"
	"math"
	"net/http"
	"os"
	"strconv"
	"strings"

	_ "github.com/mattn/go-sqlite3"
)

const (
	// nonceWindowS is how long nonces are remembered, in seconds.
	nonceWindowS = 660
	// monthlyQuota bounds a platform's calls in a month. It is compared, and never reached.
	monthlyQuota   = int64(math.MaxInt64)
	retentionYears = 5
	chain          = "Evidence chain under selection: no chain and no judicial-evidence capability is established."
)

// artwork has the members of an artwork in the order of the alphabet, as the hash of a filing covers them.
type artwork struct {
	Author    string `json:"author"`
	Condition string `json:"condition"`
	Era       string `json:"era"`
	FilingNo  string `json:"filingNo"`
	Material  string `json:"material"`
	Price     int64  `json:"price"`
	Size      string `json:"size"`
	Timestamp string `json:"timestamp"`
}

type filing struct {
	FilingNo  string `json:"filingNo"`
	Status    string `json:"status"`
	Chain     string `json:"chain"`
	Hash      string `json:"hash"`
	Timestamp string `json:"timestamp"`
}

type record struct {
	Event string `json:"event"`
	At    string `json:"at"`
}

type provenance struct {
	FilingNo       string   `json:"filingNo"`
	Author         string   `json:"author"`
	Records        []record `json:"records"`
	RetentionYears int      `json:"retentionYears"`
}

// registry is the database. One goroutine uses it.
type registry struct {
	begin, commit                                  *sql.Stmt
	findNonce, claimNonce, forgetNonces, countCall *sql.Stmt
	nextNumber, insertFiling, insertRecord         *sql.Stmt
	author, records                                *sql.Stmt

	// window is the current window of nonces, as long as nonces are remembered.
	window int64
}

// openRegistry opens a database with the pragmas of yardstick.ts, and the tables of a file.
func openRegistry(file, tables string) (*registry, error) {
	schema, err := os.ReadFile(tables)
	if err != nil {
		return nil, err
	}
	// Transactions need one connection for all statements. One goroutine uses it, so SQLite needs no mutex.
	options := "?_mutex=no&_journal_mode=WAL&_synchronous=FULL&_cache_size=-32768"
	db, err := sql.Open("sqlite3", file+options)
	if err != nil {
		return nil, err
	}
	ctx := context.Background()
	conn, err := db.Conn(ctx)
	if err != nil {
		return nil, err
	}
	if _, err := conn.ExecContext(ctx, "PRAGMA wal_autocheckpoint = 4000;"+string(schema)); err != nil {
		return nil, err
	}
	reg := &registry{}
	for stmt, text := range map[**sql.Stmt]string{
		&reg.begin:        "BEGIN IMMEDIATE",
		&reg.commit:       "COMMIT",
		&reg.findNonce:    "SELECT 1 FROM nonce WHERE window = ? AND platform = ? AND nonce = ?",
		&reg.claimNonce:   "INSERT OR IGNORE INTO nonce VALUES (?, ?, ?)",
		&reg.forgetNonces: "DELETE FROM nonce WHERE window < ?",
		&reg.countCall:    "INSERT INTO usage VALUES (?, ?, 1) ON CONFLICT DO UPDATE SET calls = calls + 1 WHERE calls < ?",
		&reg.nextNumber:   "INSERT INTO number_sequence VALUES (?, 1) ON CONFLICT DO UPDATE SET last = last + 1 RETURNING last",
		&reg.insertFiling: "INSERT INTO filing VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
		&reg.insertRecord: "INSERT INTO provenance_record VALUES (?, 1, 'SUBMITTED', ?)",
		&reg.author:       "SELECT author FROM filing WHERE number = ?",
		&reg.records:      "SELECT event, at FROM provenance_record WHERE number = ? ORDER BY position",
	} {
		if *stmt, err = conn.PrepareContext(ctx, text); err != nil {
			return nil, err
		}
	}
	return reg, nil
}

// admit uses up the nonce and counts the call; the status of the error if the nonce was used or no quota is left.
func (r *registry) admit(c *call) int {
	window := c.now.Unix() / nonceWindowS
	if window != r.window {
		exec(r.forgetNonces, window-1)
		r.window = window
	}
	var one int
	if find(r.findNonce.QueryRow(window-1, c.platform.id, c.nonce), &one) ||
		exec(r.claimNonce, window, c.platform.id, c.nonce) == 0 {
		return http.StatusUnauthorized
	}
	if exec(r.countCall, c.platform.id, c.now.Format("2006-01"), monthlyQuota) == 0 {
		return http.StatusTooManyRequests
	}
	return http.StatusOK
}

// file stores an artwork under the next number of the year.
func (r *registry) file(a artwork, c *call) filing {
	year := c.now.Year()
	var last int
	find(r.nextNumber.QueryRow(year), &last)
	number := year*1_000_000 + last
	a.FilingNo = fmt.Sprintf("AS-%d-%06d", year, last)
	a.Timestamp = c.now.Format("2006-01-02T15:04:05+00:00")
	digest := sha256.Sum256(encode(a))
	hash := hex.EncodeToString(digest[:])
	exec(r.insertFiling,
		number, c.platform.id, a.Author, a.Era, a.Size, a.Material, a.Condition, a.Price, hash, a.Timestamp)
	exec(r.insertRecord, number, a.Timestamp[:len("2006-01-02")])
	return filing{a.FilingNo, "SUBMITTED", chain, hash, a.Timestamp}
}

// provenance returns what is known of a filing.
func (r *registry) provenance(filingNo string) (any, int) {
	number, err := strconv.Atoi(strings.ReplaceAll(strings.TrimPrefix(filingNo, "AS-"), "-", ""))
	p := provenance{FilingNo: filingNo, RetentionYears: retentionYears}
	if err != nil || !find(r.author.QueryRow(number), &p.Author) {
		return nil, http.StatusNotFound
	}
	rows, err := r.records.Query(number)
	check(err)
	defer rows.Close()
	for rows.Next() {
		var rec record
		check(rows.Scan(&rec.Event, &rec.At))
		p.Records = append(p.Records, rec)
	}
	check(rows.Err())
	return p, http.StatusOK
}

// exec runs a statement, and returns how many rows it changed.
func exec(stmt *sql.Stmt, args ...any) int64 {
	result, err := stmt.Exec(args...)
	check(err)
	changed, err := result.RowsAffected()
	check(err)
	return changed
}

// find reads the one column of a row; false if there is no row.
func find(row *sql.Row, column any) bool {
	err := row.Scan(column)
	if err == sql.ErrNoRows {
		return false
	}
	check(err)
	return true
}

// encode returns a value as JSON that JSON.stringify would write, too.
func encode(value any) []byte {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	check(encoder.Encode(value))
	return bytes.TrimSuffix(text.Bytes(), []byte("\n"))
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
