// The floor in Go: what floor.ts does, with net/http, database/sql and mattn/go-sqlite3. Handlers verify signatures and
// encode responses in parallel. One goroutine uses the database: all calls that wait for it share a commit, and
// responses follow the commit. As in floor.ts, an error of the database ends the process.
//
// It takes a folder with credentials and a file with the tables. It prints a line once it accepts connections.
package main

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"syscall"
	"time"
)

const (
	// bodyBytesMax bounds the body of a filing.
	bodyBytesMax = 64 << 10
	// callsMax bounds the calls of a commit.
	callsMax = 1024
)

// platform is the owner of a key, numbered by its place among the credentials.
type platform struct {
	id     int64
	secret []byte
}

// call is a request whose signature is right, and its response once done is closed.
type call struct {
	platform platform
	nonce    string
	now      time.Time
	run      func(*registry, *call) (any, int)

	value  any
	status int
	done   chan struct{}
}

type server struct {
	platforms map[string]platform
	waiting   chan *call
}

func main() {
	log.SetFlags(0)
	if len(os.Args) != 3 {
		log.Fatal("usage: go FOLDER TABLES")
	}
	if err := serve(os.Args[1], os.Args[2]); err != nil {
		log.Fatal(err)
	}
}

func serve(dir, tables string) error {
	platforms, err := readPlatforms(filepath.Join(dir, "bench-credentials.json"))
	if err != nil {
		return err
	}
	reg, err := openRegistry(filepath.Join(dir, "yardstick.db"), tables)
	if err != nil {
		return err
	}
	s := &server{platforms: platforms, waiting: make(chan *call, callsMax)}
	go s.write(reg)
	mux := http.NewServeMux()
	mux.HandleFunc("POST /api/v1/filing", s.file)
	mux.HandleFunc("GET /api/v1/provenance/{filingNo}", s.provenance)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	httpServer := &http.Server{Handler: mux}
	context.AfterFunc(ctx, func() { httpServer.Close() })
	fmt.Printf("go ready public=http://%s\n", listener.Addr())
	if err := httpServer.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

func readPlatforms(file string) (map[string]platform, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var credentials struct {
		Keys []struct{ APIKey, APISecret string }
	}
	if err := json.Unmarshal(text, &credentials); err != nil {
		return nil, err
	}
	platforms := make(map[string]platform, len(credentials.Keys))
	for i, key := range credentials.Keys {
		platforms[key.APIKey] = platform{id: int64(i + 1), secret: []byte(key.APISecret)}
	}
	return platforms, nil
}

// write runs calls in transactions, and ends each call once its transaction is on disk.
func (s *server) write(reg *registry) {
	batch := make([]*call, 0, callsMax)
	for first := range s.waiting {
		batch = append(batch[:0], first)
		for range min(len(s.waiting), callsMax-1) {
			batch = append(batch, <-s.waiting)
		}
		exec(reg.begin)
		for _, c := range batch {
			if c.status = reg.admit(c); c.status == http.StatusOK {
				c.value, c.status = c.run(reg, c)
			}
		}
		exec(reg.commit)
		for _, c := range batch {
			close(c.done)
		}
	}
}

func (s *server) file(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, bodyBytesMax))
	if err != nil {
		respond(w, http.StatusBadRequest, nil)
		return
	}
	p, ok := s.authenticate(r, body)
	if !ok {
		respond(w, http.StatusUnauthorized, nil)
		return
	}
	var art artwork
	if err := json.Unmarshal(body, &art); err != nil {
		respond(w, http.StatusBadRequest, nil)
		return
	}
	s.respondTo(w, r, p, func(reg *registry, c *call) (any, int) { return reg.file(art, c), http.StatusOK })
}

func (s *server) provenance(w http.ResponseWriter, r *http.Request) {
	p, ok := s.authenticate(r, nil)
	if !ok {
		respond(w, http.StatusUnauthorized, nil)
		return
	}
	s.respondTo(w, r, p, func(reg *registry, _ *call) (any, int) { return reg.provenance(r.PathValue("filingNo")) })
}

// respondTo responds to a platform's request once run has run for it in a transaction that is on disk.
func (s *server) respondTo(w http.ResponseWriter, r *http.Request, p platform, run func(*registry, *call) (any, int)) {
	c := &call{platform: p, nonce: r.Header.Get("X-Nonce"), now: time.Now().UTC(), run: run, done: make(chan struct{})}
	s.waiting <- c
	<-c.done
	respond(w, c.status, c.value)
}

// authenticate returns the platform that signed a request.
func (s *server) authenticate(r *http.Request, body []byte) (platform, bool) {
	p, ok := s.platforms[r.Header.Get("X-Api-Key")]
	sent, err := hex.DecodeString(r.Header.Get("X-Signature"))
	if !ok || err != nil {
		return platform{}, false
	}
	digest := sha256.Sum256(body)
	mac := hmac.New(sha256.New, p.secret)
	io.WriteString(mac, r.Method+r.RequestURI+hex.EncodeToString(digest[:]))
	io.WriteString(mac, r.Header.Get("X-Timestamp")+r.Header.Get("X-Nonce"))
	return p, hmac.Equal(mac.Sum(nil), sent)
}

func respond(w http.ResponseWriter, status int, value any) {
	if value == nil {
		value = struct{}{}
	}
	body := encode(value)
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	w.Write(body)
}
