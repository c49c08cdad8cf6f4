// Command bundle verifies an evidence bundle of version 2 with golang.org/x/mod/sumdb/{tlog,note}: bundle FILE VKEY. It prints the
// record with what the bundle discloses.
package main

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"log"
	"os"
	"strings"

	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"
)

type bundle struct {
	Format    string `json:"format"`
	Version   int    `json:"version"`
	Record    string `json:"record"`
	Leaf      string `json:"leaf"`
	Proof     string `json:"proof"`
	Disclosed map[string]struct{ Salt, Value string }
}

func digest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

func verify(given bundle, vkey string) (map[string]any, error) {
	if given.Format != "artseal-evidence" || given.Version != 2 {
		return nil, fmt.Errorf("another format")
	}
	var record map[string]any
	var leaf struct{ Commitment, Kind, Number string }
	if err := json.Unmarshal([]byte(given.Record), &record); err != nil {
		return nil, err
	}
	if err := json.Unmarshal([]byte(given.Leaf), &leaf); err != nil {
		return nil, err
	}
	if digest(given.Record) != leaf.Commitment || leaf.Kind != "FILING" || record["filingNo"] != leaf.Number {
		return nil, fmt.Errorf("the leaf is of another record")
	}
	for name, member := range given.Disclosed {
		if record[name] != digest(member.Salt+member.Value) {
			return nil, fmt.Errorf("another %s", name)
		}
		record[name] = member.Value
	}
	return record, included(given, vkey)
}

// included checks the tlog-proof of the leaf, and that the key signed its checkpoint.
func included(given bundle, vkey string) error {
	verifier, err := note.NewVerifier(vkey)
	if err != nil {
		return err
	}
	head, signed, _ := strings.Cut(given.Proof, "\n\n")
	opened, err := note.Open([]byte(signed), note.VerifierList(verifier))
	if err != nil {
		return err
	}
	var size, index int64
	lines := strings.Split(opened.Text, "\n")
	if _, err := fmt.Sscan(lines[1], &size); err != nil {
		return err
	}
	steps := strings.Split(head, "\n")
	if _, err := fmt.Sscanf(steps[1], "index %d", &index); err != nil {
		return err
	}
	var path tlog.RecordProof
	for _, step := range steps[2:] {
		hash, err := hashOf(step)
		if err != nil {
			return err
		}
		path = append(path, hash)
	}
	root, err := hashOf(lines[2])
	if err != nil {
		return err
	}
	return tlog.CheckRecord(path, size, root, index, tlog.RecordHash([]byte(given.Leaf)))
}

func hashOf(text string) (tlog.Hash, error) {
	decoded, err := base64.StdEncoding.DecodeString(text)
	if err != nil || len(decoded) != tlog.HashSize {
		return tlog.Hash{}, fmt.Errorf("%q is no hash", text)
	}
	return tlog.Hash(decoded), nil
}

func main() {
	data, err := os.ReadFile(os.Args[1])
	if err != nil {
		log.Fatal(err)
	}
	var given bundle
	if err := json.Unmarshal(data, &given); err != nil {
		log.Fatal(err)
	}
	record, err := verify(given, os.Args[2])
	if err != nil {
		log.Fatal(err)
	}
	json.NewEncoder(os.Stdout).Encode(record)
}
