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
	freeRows []uint32       // rows of keys that are gone
	accounts pages[account] // text: the account's id
	byID     index
	seed     maphash.Seed
	words    internedTexts
	stopped  atomic.Pointer[unusableEvents] // nil: nothing is
	changes  int                            // since the last snapshot
}

func newState() *state { return &state{seed: maphash.MakeSeed()} }

// key is a credential that was not revoked.
type key struct {
	hash    token.Hash
	account uint32 // row + 1; 0 is nobody's
	idLen   uint16
	kind    credentialKind
	role    textID
}

type credentialKind uint8

const (
	freeRow credentialKind = iota // a row that is free
	secret
	publishable
	areaToken
)

// foundKey is a key, with where it was foundKey.
type foundKey struct {
	*key
	row     uint32
	text    string
	origins []string
}

func (f foundKey) id() string   { return f.text[:f.idLen] }
func (f foundKey) hint() string { return f.text[f.idLen:] }

func fingerprint(h *token.Hash) uint32 { return binary.LittleEndian.Uint32(h[:]) }

func (s *state) findKey(h *token.Hash) (foundKey, bool) {
	for n := range s.byHash.rows(fingerprint(h)) {
		p, i := s.keys.at(n)
		if k := &p.rows[i]; k.kind != freeRow && subtle.ConstantTimeCompare(k.hash[:], h[:]) == 1 {
			return foundKey{k, n, p.text(i), p.list(i)}, true
		}
	}
	return foundKey{}, false
}

// putKey adds a key, or replaces the one of the same hash.
func (s *state) putKey(k key, text string, origins []string) error {
	if len(text) > maxText {
		return fmt.Errorf("key with %d bytes of text", len(text))
	}
	if old, ok := s.findKey(&k.hash); ok {
		s.keys.set(old.row, k, text, origins)
		return nil
	}
	n := s.keys.rows
	if last := len(s.freeRows) - 1; last >= 0 {
		n, s.freeRows = s.freeRows[last], s.freeRows[:last]
	}
	s.keys.set(n, k, text, origins)
	s.byHash.add(fingerprint(&k.hash), n)
	return nil
}

// dropKey forgets a key for good: it is as one that never was.
func (s *state) dropKey(h *token.Hash) {
	if k, ok := s.findKey(h); ok {
		s.byHash.drop(fingerprint(h), k.row)
		s.keys.set(k.row, key{}, "", nil)
		s.freeRows = append(s.freeRows, k.row)
	}
}

// findAccount finds the row of an findAccount, by its id.
func (s *state) findAccount(id string) (uint32, bool) {
	for n := range s.byID.rows(uint32(maphash.String(s.seed, id))) {
		if p, i := s.accounts.at(n); p.text(i) == id {
			return n, true
		}
	}
	return 0, false
}

// ensureAccount is account, with a new row for an id that was never heard of.
func (s *state) ensureAccount(id string) (uint32, error) {
	if n, ok := s.findAccount(id); ok {
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

// internedTexts are the few texts that rows have in common: plans and roles. They only ever grow.
type internedTexts struct{ list atomic.Pointer[[]string] }

// textID is a text in words; 0 is "".
type textID uint16

func (w *internedTexts) text(n textID) string {
	if n == 0 {
		return ""
	}
	return (*w.list.Load())[n-1]
}

func (w *internedTexts) intern(text string) textID {
	if text == "" {
		return 0
	}
	all := w.all()
	if i := slices.Index(all, text); i >= 0 {
		return textID(i + 1)
	}
	all = append(slices.Clone(all), text)
	w.list.Store(&all)
	return textID(len(all))
}

func (w *internedTexts) all() []string {
	if list := w.list.Load(); list != nil {
		return *list
	}
	return nil
}
