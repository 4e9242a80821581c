package keyring

import (
	"crypto/subtle"
	"encoding/binary"
	"fmt"
	"hash/maphash"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"lieudit/eventstore"
	"lieudit/schemas/event"
	"lieudit/schemas/grant"
	"lieudit/schemas/plan"
	"lieudit/schemas/token"
)

// state is what the ring knows at its checkpoint. It holds almost no pointers, so that a million keys cost the garbage
// collector nothing. One goroutine writes; others read without a lock. So a row is written before an index refers to it, and
// is taken out of the index before it is emptied.
type state struct {
	keys     pages[key] // text: id and hint; list: origins
	byHash   index
	freeRows []uint32       // of keys that are gone
	expiries expiryHeap     // of the links and sessions among the keys
	accounts pages[account] // text: id
	byID     index
	seed     maphash.Seed // of the hashes of account ids in byID
	words    internedTexts
	stopped  atomic.Pointer[unusableEvents] // nil if no stream is stopped
	changes  int                            // events folded since the last snapshot
}

func newState() *state { return &state{seed: maphash.MakeSeed()} }

// key is a credential that is not revoked.
type key struct {
	hash    token.Hash
	account uint32         // row + 1; 0 for a token of no account
	idLen   uint16         // bytes of the row's text that are the id; the rest is the hint
	kind    credentialKind // freeRow for a row without a key
	role    textID         // of a customer-area token
}

type credentialKind uint8

const (
	freeRow credentialKind = iota // the row is free
	secret
	publishable
	areaToken // customer-area token
	areaLink  // a link for one session of a token; see pass.go
	areaSession
)

// foundKey is a key with its row and its texts.
type foundKey struct {
	*key
	row     uint32
	text    string
	origins []string
}

func (f foundKey) id() string { return f.text[:f.idLen] }

func (f foundKey) hint() string { return f.text[f.idLen:] }

// fingerprint is the number by which the index finds a hash. Hashes are random, so their first four bytes are enough.
func fingerprint(h *token.Hash) uint32 { return binary.LittleEndian.Uint32(h[:]) }

// findKey finds the key with a hash, which it compares in constant time.
func (s *state) findKey(h *token.Hash) (foundKey, bool) {
	for n := range s.byHash.rows(fingerprint(h)) {
		p, i := s.keys.pageOf(n)
		if k := &p.rows[i]; k.kind != freeRow && subtle.ConstantTimeCompare(k.hash[:], h[:]) == 1 {
			return foundKey{k, n, p.text(i), p.list(i)}, true
		}
	}
	return foundKey{}, false
}

// putKey adds a key, or replaces the one with the same hash. It reuses the row of a dropped key if there is one. text is the
// key's id followed by its hint.
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
	s.byHash.addEntry(fingerprint(&k.hash), n)
	return nil
}

// dropKey deletes the key with a hash, if there is one.
func (s *state) dropKey(h token.Hash) {
	if k, ok := s.findKey(&h); ok {
		s.byHash.drop(fingerprint(&h), k.row)
		s.keys.set(k.row, key{}, "", nil)
		s.freeRows = append(s.freeRows, k.row)
	}
}

// findAccount finds the row of an account by its id.
func (s *state) findAccount(id string) (uint32, bool) {
	for n := range s.byID.rows(uint32(maphash.String(s.seed, id))) {
		if p, i := s.accounts.pageOf(n); p.text(i) == id {
			return n, true
		}
	}
	return 0, false
}

// ensureAccount returns the row of an account, a new one if necessary.
func (s *state) ensureAccount(id string) (uint32, error) {
	if n, ok := s.findAccount(id); ok {
		return n, nil
	}
	if len(id) > maxText {
		return 0, fmt.Errorf("account id of %d bytes", len(id))
	}
	n := s.accounts.rows
	s.accounts.set(n, account{}, id, nil)
	s.byID.addEntry(uint32(maphash.String(s.seed, id)), n)
	return n, nil
}

// internedTexts are the few texts that rows share: plans and roles. They are never removed.
type internedTexts struct{ list atomic.Pointer[[]string] }

// textID is the number of an interned text; 0 is "".
type textID uint16

// textOf returns the text of a number that intern returned.
func (w *internedTexts) textOf(n textID) string {
	if n == 0 {
		return ""
	}
	return (*w.list.Load())[n-1]
}

// intern returns the number of a text, a new one if necessary. It replaces the list and never changes it, because readers may
// hold it.
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

// categories are the categories of all events that concern credentials.
var categories = eventstore.Filter{"account", "token"}

// foldEvent applies one recorded event. Personal fields stay sealed: the ring needs neither them nor a vault. An event that
// the ring does not know is an error, because it may revoke a key. One that cannot be used is an *eventstore.UnusableError.
func (s *state) foldEvent(r eventstore.RecordedEvent) error {
	e, err := eventstore.DecodeStrict(r)
	if err != nil {
		return err
	}
	if err := s.applyEvent(r, e); err != nil {
		return fmt.Errorf("%s@%d: %w", r.Stream, r.Revision, err)
	}
	s.changes++
	return nil
}

// applyEvent applies an event. Those that the catalog marks as changing no access (event.Type.KeepsAccess) change nothing
// here. The length of a hash was checked when the event was decoded.
func (s *state) applyEvent(r eventstore.RecordedEvent, e event.Event) error {
	id := eventstore.EntityID(r.Stream)
	switch e := e.(type) {
	case event.AccountOpened:
		return s.openAccount(id, e)
	case event.PlanChanged:
		return s.updateAccount(id, func(a *account) {
			a.own.set(terms{e.Quota, s.words.intern(string(e.To))}, e.Effective, r.Time)
		})
	case event.AgencyJoined:
		return s.changeAgency(id, e.Agency, r.Time, e.Effective)
	case event.AgencyLeft:
		return s.changeAgency(id, "", r.Time, e.Effective)
	case event.AccountClosed:
		return s.updateAccount(id, func(a *account) { a.closed = r.Time.UnixMicro() })
	case event.SecretKeyIssued:
		return s.issueCredential(issuedCredential{id, e.Key, e.Hint, e.Hash, nil, secret, ""})
	case event.PublishableKeyIssued:
		return s.issueCredential(issuedCredential{id, e.Key, e.Hint, e.Hash, e.Origins, publishable, ""})
	case event.TokenIssued:
		return s.issueCredential(issuedCredential{e.Account, e.Token, e.Hint, e.Hash, nil, areaToken, e.Role})
	case event.SessionLinkIssued:
		return s.putPass(pass{token.Hash(e.TokenHash), e.Link, e.Expires, areaLink}, e.Hash, r.Time)
	case event.SessionOpened:
		return s.putPass(pass{token.Hash(e.TokenHash), e.Session, e.Expires, areaSession}, e.Hash, r.Time)
	case event.SessionClosed:
		s.dropKey(token.Hash(e.Hash))
	case event.SessionLinkEnded:
		s.dropKey(token.Hash(e.Hash))
	case event.KeyOriginsChanged:
		return s.changeOrigins(e)
	case event.KeyRevoked:
		s.dropKey(token.Hash(e.Hash))
	case event.TokenRevoked:
		s.dropKey(token.Hash(e.Hash))
	default:
		if t, ok := event.Lookup(r.Type); !ok || !t.KeepsAccess() || !categories.Matches(r.Stream) {
			return fmt.Errorf("%s is not for a key ring", r.Type)
		}
	}
	return nil
}

// openAccount sets an account's first terms. The row may exist already, if another account named this one as its agency.
func (s *state) openAccount(id string, e event.AccountOpened) error {
	agency, err := s.accountRef(e.Agency)
	if err != nil {
		return err
	}
	return s.updateAccount(id, func(a *account) {
		a.opened, a.anchor = true, packDate(e.Anchor)
		a.own.value = terms{e.Quota, s.words.intern(string(e.Plan))}
		a.agency.value = agency
	})
}

// updateAccount changes a copy of an account's row and then replaces the row, because readers may be reading it.
func (s *state) updateAccount(id string, f func(*account)) error {
	n, err := s.ensureAccount(id)
	if err != nil {
		return err
	}
	p, i := s.accounts.pageOf(n)
	changed := p.rows[i]
	f(&changed)
	s.accounts.set(n, changed, p.text(i), nil)
	return nil
}

// accountRef is an account as rows refer to it: its row + 1, or 0 for no account.
func (s *state) accountRef(id string) (uint32, error) {
	if id == "" {
		return 0, nil
	}
	n, err := s.ensureAccount(id)
	return n + 1, err
}

// changeAgency makes an account a sub-client of another account, or of none for "", from effective on. A scheduled value that
// has begun becomes the current one, with the instant when it began.
func (s *state) changeAgency(id, to string, recorded, effective time.Time) error {
	agency, err := s.accountRef(to)
	if err != nil {
		return err
	}
	return s.updateAccount(id, func(a *account) {
		if a.agency.from != 0 && a.agency.from <= recorded.UnixMicro() {
			a.agencyBegan = a.agency.from
		}
		if !effective.After(recorded) {
			a.agencyBegan = 0
		}
		a.agency.set(agency, effective, recorded)
	})
}

// issuedCredential is what the three events that issue a credential have in common.
type issuedCredential struct {
	account, id, hint string
	hash              []byte
	origins           []string
	kind              credentialKind
	role              string
}

func (s *state) issueCredential(i issuedCredential) error {
	owner, err := s.accountRef(i.account)
	if err != nil {
		return err
	}
	k := key{hash: token.Hash(i.hash), account: owner, idLen: uint16(len(i.id)), kind: i.kind, role: s.words.intern(i.role)}
	return s.putKey(k, i.id+i.hint, i.origins)
}

// changeOrigins replaces the origins of a publishable key. A key that is unknown by now, because it was revoked, stays
// unknown.
func (s *state) changeOrigins(e event.KeyOriginsChanged) error {
	h := token.Hash(e.Hash)
	if k, ok := s.findKey(&h); ok {
		return s.putKey(*k.key, k.text, e.Origins)
	}
	return nil
}

// account is everything that decides what an account's keys give. Rows of accounts are never freed: a closed account keeps
// its row.
type account struct {
	own         scheduled[terms]
	agency      scheduled[uint32] // row + 1 of the account it is a sub-client of, 0 for none; see state.agencyAt
	agencyBegan int64             // when a scheduled agency.value began, in Unix microseconds; 0 if it held at once
	closed      int64             // when it was closed, in Unix microseconds; 0 while it is open
	anchor      int32             // see packDate
	opened      bool
}

func (a *account) isOpen() bool { return a.opened && a.closed == 0 }

// terms are an account's own plan and volume.
type terms struct {
	quota int64
	plan  textID
}

// scheduled is grant.Scheduled without a pointer. Instants are Unix microseconds.
type scheduled[T any] struct {
	value, next T
	from        int64 // when next begins; 0 if nothing is scheduled
}

// set makes value hold from an instant on; recorded is when that was decided. It replaces a value that has not begun by then.
func (s *scheduled[T]) set(value T, from, recorded time.Time) {
	s.value, s.from = s.valueAt(recorded.UnixMicro()), 0
	if from.After(recorded) {
		s.next, s.from = value, from.UnixMicro()
		return
	}
	s.value = value
}

// valueAt is the value at an instant.
func (s *scheduled[T]) valueAt(t int64) T {
	if s.from != 0 && s.from <= t {
		return s.next
	}
	return s.value
}

// termsAt returns the id of the account in row n and its terms. ok is false if the account or its agency is not open; the id
// and the terms are those of the row even then.
func (s *state) termsAt(n uint32, now time.Time) (id string, t grant.Terms, ok bool) {
	p, i := s.accounts.pageOf(n)
	a, at := &p.rows[i], now.UnixMicro()
	own := a.own.valueAt(at)
	t = grant.Terms{Plan: plan.Name(s.words.textOf(own.plan)), Quota: own.quota, Anchor: unpackDate(a.anchor)}
	ok = a.isOpen()
	if agency := s.agencyAt(a, at); agency != 0 {
		ok = s.inheritTerms(&t, agency-1, at) && ok
	}
	return p.text(i), t, ok
}

// agencyAt is the agency of an account at an instant, as a row + 1, or 0. A membership scheduled to begin after its agency
// was closed never begins: the account stays as it was.
func (s *state) agencyAt(a *account, at int64) uint32 {
	if a.agency.from != 0 && a.agency.from <= at && !s.wasClosedBefore(a.agency.next, a.agency.from) {
		return a.agency.next
	}
	if s.wasClosedBefore(a.agency.value, a.agencyBegan) {
		return 0
	}
	return a.agency.value
}

// wasClosedBefore reports whether the account at ref, a row + 1, was closed before an instant.
func (s *state) wasClosedBefore(ref uint32, at int64) bool {
	if ref == 0 {
		return false
	}
	p, i := s.accounts.pageOf(ref - 1)
	closed := p.rows[i].closed
	return closed != 0 && closed < at
}

// inheritTerms gives t what a sub-client has from the agency in row n: its plan and anchor, and the agency's quota along with
// its own. The agency's own agency does not matter.
func (s *state) inheritTerms(t *grant.Terms, n uint32, at int64) (open bool) {
	p, i := s.accounts.pageOf(n)
	agency := &p.rows[i]
	own := agency.own.valueAt(at)
	t.Plan, t.AgencyQuota = plan.Name(s.words.textOf(own.plan)), own.quota
	t.Anchor = unpackDate(agency.anchor)
	t.Agency = p.text(i)
	return agency.isOpen()
}

// packDate packs a date into one number: the day in the five lowest bits, the month in the four above, then the year.
func packDate(d plan.Date) int32 { return int32(d.Year<<9 | int(d.Month)<<5 | d.Day) }

func unpackDate(n int32) plan.Date {
	return plan.Date{Year: int(n >> 9), Month: time.Month(n >> 5 & 15), Day: int(n & 31)}
}

// The rest of this file stops streams. An event that cannot be used may be the one that revokes a key. So it stops its own
// stream, and only that: the keys of a stopped account, and of the sub-clients of a stopped agency, are found but give
// nothing, and neither does a stopped token. A correction that names the event lets the stream continue. Nothing has to be
// undone then, since the event was never folded.

// unusableEvents are, by stream, the events that cannot be used and that no correction names. A map is replaced, never
// changed.
type unusableEvents map[string][]eventstore.Revision

// isStopped reports whether a stream holds an event that cannot be used.
func (s *state) isStopped(category, id string) bool {
	all := s.stopped.Load()
	if all == nil || len(*all) == 0 {
		return false
	}
	return len((*all)[category+"-"+id]) > 0
}

// stopStream adds an event that cannot be used.
func (s *state) stopStream(r eventstore.RecordedEvent) {
	s.setStopped(r.Stream, append(slices.Clone(s.stoppedStreams()[r.Stream]), r.Revision))
}

// resumeStream removes an event that a correction names. It returns false for an event that was folded.
func (s *state) resumeStream(stream string, at eventstore.Revision) bool {
	events := s.stoppedStreams()[stream]
	i := slices.Index(events, at)
	if i < 0 {
		return false
	}
	s.setStopped(stream, slices.Delete(slices.Clone(events), i, i+1))
	return true
}

// stoppedStreams is the map of stopped streams, nil if there is none. It must not be changed.
func (s *state) stoppedStreams() unusableEvents {
	if all := s.stopped.Load(); all != nil {
		return *all
	}
	return nil
}

// setStopped replaces the events of one stream; without events the stream is no longer stopped.
func (s *state) setStopped(stream string, events []eventstore.Revision) {
	changed := maps.Clone(s.stoppedStreams())
	if changed == nil {
		changed = unusableEvents{}
	}
	if changed[stream] = events; len(events) == 0 {
		delete(changed, stream)
	}
	s.stopped.Store(&changed)
}

// marshal returns the events in the form of a snapshot: stream@revision, sorted.
func (s unusableEvents) marshal() (all []string) {
	for stream, events := range s {
		for _, at := range events {
			all = append(all, stream+"@"+strconv.FormatInt(int64(at), 10))
		}
	}
	slices.Sort(all)
	return all
}

// unmarshalUnusableEvents is the opposite of marshal.
func unmarshalUnusableEvents(texts []string) (unusableEvents, error) {
	all := unusableEvents{}
	for _, text := range texts {
		stream, revision, _ := strings.Cut(text, "@")
		at, err := strconv.ParseInt(revision, 10, 64)
		if err != nil {
			return nil, fmt.Errorf("%q is no event: %w", text, err)
		}
		all[stream] = append(all[stream], eventstore.Revision(at))
	}
	return all, nil
}
