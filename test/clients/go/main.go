// Command vectors prints what golang.org/x/mod/sumdb/{tlog,note} make of a tree of 600 leaves and of a note, and `vectors check`
// has them check what another program made. Test vectors of the evidence log come from here.
package main

import (
	"bytes"
	"crypto/ed25519"
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

// The leaves of the tree are "leaf 0", "leaf 1", and so on; of each size these indexes and older sizes are proven. Of the
// latter there is a digest alone.
const leaves = 600

func indexes(size int64) []int64 { return []int64{0, size / 3, size / 2, size - 1} }
func olderSizes(size int64) []int64 {
	return []int64{max(1, size/3), max(1, size/2), max(1, size-1), size}
}

type storage []tlog.Hash

func (s storage) ReadHashes(indexes []int64) ([]tlog.Hash, error) {
	hashes := make([]tlog.Hash, len(indexes))
	for place, index := range indexes {
		hashes[place] = s[index]
	}
	return hashes, nil
}

func must[T any](value T, err error) T {
	if err != nil {
		log.Fatal(err)
	}
	return value
}

type proof struct {
	Index int64    `json:"index"`
	Size  int64    `json:"size"`
	Path  []string `json:"path"`
}

type vectors struct {
	Roots        map[string]string `json:"roots"`
	AllRoots     string            `json:"sha256OfAllRoots"`
	AllInclusion string            `json:"sha256OfInclusionProofs"`
	AllConsist   string            `json:"sha256OfConsistencyProofs"`
	Inclusion    []proof           `json:"inclusion"`
	Vkeys        []string          `json:"vkeys"`
	Note         string            `json:"note"`
}

func texts(hashes []tlog.Hash) []string {
	lines := []string{}
	for _, hash := range hashes {
		lines = append(lines, hex.EncodeToString(hash[:]))
	}
	return lines
}

func print() {
	var stored storage
	var out vectors
	out.Roots = map[string]string{}
	out.Inclusion = []proof{}
	all, inclusion, consistency := sha256.New(), sha256.New(), sha256.New()
	for size := int64(0); size <= leaves; size++ {
		root := must(tlog.TreeHash(size, stored))
		all.Write(root[:])
		isKept := size <= 8 || size%256 <= 1 || size == leaves
		if isKept {
			out.Roots[fmt.Sprint(size)] = hex.EncodeToString(root[:])
		}
		if size > 0 {
			for _, index := range indexes(size) {
				path := must(tlog.ProveRecord(size, index, stored))
				for _, hash := range path {
					inclusion.Write(hash[:])
				}
				if isKept {
					out.Inclusion = append(out.Inclusion, proof{index, size, texts(path)})
				}
			}
			for _, older := range olderSizes(size) {
				for _, hash := range must(tlog.ProveTree(size, older, stored)) {
					consistency.Write(hash[:])
				}
			}
		}
		stored = append(stored, must(tlog.StoredHashes(size, fmt.Appendf(nil, "leaf %d", size), stored))...)
	}
	out.AllRoots = hex.EncodeToString(all.Sum(nil))
	out.AllInclusion = hex.EncodeToString(inclusion.Sum(nil))
	out.AllConsist = hex.EncodeToString(consistency.Sum(nil))
	root := must(tlog.TreeHash(leaves, stored))
	text := fmt.Sprintf("log.example/go\n%d\n%s\n", leaves, base64.StdEncoding.EncodeToString(root[:]))
	var signers []note.Signer
	for seed := range byte(2) {
		signer, vkey := key("log.example/go", seed)
		signers = append(signers, signer)
		out.Vkeys = append(out.Vkeys, vkey)
	}
	out.Note = string(must(note.Sign(&note.Note{Text: text}, signers...)))
	encoder := json.NewEncoder(os.Stdout)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", " ")
	encoder.Encode(out)
}

// key is the one whose seed is 32 times this byte.
func key(name string, seed byte) (note.Signer, string) {
	private := ed25519.NewKeyFromSeed(bytes.Repeat([]byte{seed}, ed25519.SeedSize))
	vkey := must(note.NewEd25519VerifierKey(name, private.Public().(ed25519.PublicKey)))
	id := strings.Split(vkey, "+")[1]
	secret := base64.StdEncoding.EncodeToString(append([]byte{1}, private.Seed()...))
	return must(note.NewSigner("PRIVATE+KEY+" + name + "+" + id + "+" + secret)), vkey
}

// What another program made.
type claim struct {
	Vkeys []string `json:"vkeys"`
	// A checkpoint.
	Note string `json:"note"`
	// The data of a leaf, its index, and its inclusion proof.
	Leaf  string   `json:"leaf"`
	Index int64    `json:"index"`
	Path  []string `json:"path"`
}

func hashes(texts []string) []tlog.Hash {
	var hashes []tlog.Hash
	for _, text := range texts {
		hashes = append(hashes, tlog.Hash(must(hex.DecodeString(text))))
	}
	return hashes
}

func check() error {
	var given claim
	if err := json.NewDecoder(os.Stdin).Decode(&given); err != nil {
		return err
	}
	var verifiers []note.Verifier
	for _, vkey := range given.Vkeys {
		verifiers = append(verifiers, must(note.NewVerifier(vkey)))
	}
	opened, err := note.Open([]byte(given.Note), note.VerifierList(verifiers...))
	if err != nil {
		return err
	}
	if len(opened.Sigs) != len(verifiers) {
		return fmt.Errorf("%d of %d keys signed", len(opened.Sigs), len(verifiers))
	}
	lines := strings.Split(opened.Text, "\n")
	var size int64
	if _, err := fmt.Sscanf(lines[1], "%d", &size); err != nil {
		return err
	}
	root := tlog.Hash(must(base64.StdEncoding.DecodeString(lines[2])))
	leaf := tlog.RecordHash([]byte(given.Leaf))
	return tlog.CheckRecord(hashes(given.Path), size, root, given.Index, leaf)
}

func main() {
	if len(os.Args) < 2 {
		print()
		return
	}
	if err := check(); err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Println("good")
}
