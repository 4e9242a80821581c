package keyring

import (
	"crypto/subtle"
	"encoding/binary"
	"fmt"
	"hash/maphash"
	"slices"
	"sync/atomic"

	"lieudit/schemas/token"
)

// state is what the ring knows at its mark. It holds hardly a pointer, so that a million keys cost the garbage
// collector nothing. One writer, and readers without a lock.
type state struct {
	keys     pages[key] // text: the key's id and its hint; list: its origins
	byHash   index
	free     []uint32       // rows of keys that are gone
	accounts pages[account] // text: the account's id
	byID     index
	seed     maphash.Seed
	words    words
	stopped  atomic.Pointer[stopped] // nil: nothing is
	changes  int                     // since the last snapshot
}

func newState() *state { return &state{seed: maphash.MakeSeed()} }

// key is a credential that was not revoked.
type key struct {
	hash    token.Hash
	account uint32 // row + 1; 0 is nobody's
	idLen   uint16
	kind    kind
	role    word
}

type kind uint8

const (
	none kind = iota // a row that is free
	secret
	publishable
	area
)

// found is a key, with where it was found.
type found struct {
	*key
	n       uint32
	text    string
	origins []string
}

func (f found) id() string   { return f.text[:f.idLen] }
func (f found) hint() string { return f.text[f.idLen:] }

func fingerprint(h *token.Hash) uint32 { return binary.LittleEndian.Uint32(h[:]) }

func (s *state) key(h *token.Hash) (found, bool) {
	for n := range s.byHash.rows(fingerprint(h)) {
		p, i := s.keys.at(n)
		if k := &p.rows[i]; k.kind != none && subtle.ConstantTimeCompare(k.hash[:], h[:]) == 1 {
			return found{k, n, p.text(i), p.list(i)}, true
		}
	}
	return found{}, false
}

// put adds a key, or replaces the one of the same hash.
func (s *state) put(k key, text string, origins []string) error {
	if len(text) > maxText {
		return fmt.Errorf("key with %d bytes of text", len(text))
	}
	if old, ok := s.key(&k.hash); ok {
		s.keys.set(old.n, k, text, origins)
		return nil
	}
	n := s.keys.rows
	if last := len(s.free) - 1; last >= 0 {
		n, s.free = s.free[last], s.free[:last]
	}
	s.keys.set(n, k, text, origins)
	s.byHash.add(fingerprint(&k.hash), n)
	return nil
}

// drop forgets a key for good: it is as one that never was.
func (s *state) drop(h *token.Hash) {
	if k, ok := s.key(h); ok {
		s.byHash.drop(fingerprint(h), k.n)
		s.keys.set(k.n, key{}, "", nil)
		s.free = append(s.free, k.n)
	}
}

// account finds the row of an account, by its id.
func (s *state) account(id string) (uint32, bool) {
	for n := range s.byID.rows(uint32(maphash.String(s.seed, id))) {
		if p, i := s.accounts.at(n); p.text(i) == id {
			return n, true
		}
	}
	return 0, false
}

// accountRow is account, with a new row for an id that was never heard of.
func (s *state) accountRow(id string) (uint32, error) {
	if n, ok := s.account(id); ok {
		return n, nil
	}
	if len(id) > maxText {
		return 0, fmt.Errorf("account id of %d bytes", len(id))
	}
	n := s.accounts.rows
	s.accounts.set(n, account{}, id, nil)
	s.byID.add(uint32(maphash.String(s.seed, id)), n)
	return n, nil
}

// words are the few texts that rows have in common: plans and roles. They only ever grow.
type words struct{ list atomic.Pointer[[]string] }

// word is a text in words; 0 is "".
type word uint16

func (w *words) text(n word) string {
	if n == 0 {
		return ""
	}
	return (*w.list.Load())[n-1]
}

func (w *words) of(text string) word {
	if text == "" {
		return 0
	}
	all := w.all()
	if i := slices.Index(all, text); i >= 0 {
		return word(i + 1)
	}
	all = append(slices.Clone(all), text)
	w.list.Store(&all)
	return word(len(all))
}

func (w *words) all() []string {
	if list := w.list.Load(); list != nil {
		return *list
	}
	return nil
}
