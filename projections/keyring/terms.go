package keyring

import (
	"time"

	"lieudit/schemas/access"
	"lieudit/schemas/plan"
)

// account is what decides what an account's keys give. Rows of accounts are never freed: a closed one stays,
// closed.
type account struct {
	own    scheduled[terms]
	agency scheduled[uint32] // row + 1 of the account it is a sub-client of; 0 is none
	anchor int32             // of its own; see packed
	opened bool
	closed bool
}

func (a *account) isOpen() bool { return a.opened && !a.closed }

// terms are an account's own plan and volume.
type terms struct {
	quota int64
	plan  textID
}

// scheduled is grant.Scheduled without a pointer. Instants are Unix microseconds.
type scheduled[T any] struct {
	value, next T
	from        int64 // when next begins; 0: nothing is scheduled
}

// set makes value hold from an instant on; said is when that was recorded. It replaces what has not begun by then.
func (s *scheduled[T]) set(value T, from, recorded time.Time) {
	s.value, s.from = s.at(recorded.UnixMicro()), 0
	if from.After(recorded) {
		s.next, s.from = value, from.UnixMicro()
		return
	}
	s.value = value
}

func (s *scheduled[T]) at(t int64) T {
	if s.from != 0 && s.from <= t {
		return s.next
	}
	return s.value
}

// termsAt are those of the account in row n, with its id. Not ok: it is not open, or its agency is not.
func (s *state) termsAt(n uint32, now time.Time) (id string, t access.Terms, ok bool) {
	p, i := s.accounts.at(n)
	a, at := &p.rows[i], now.UnixMicro()
	own := a.own.at(at)
	t = access.Terms{Plan: plan.Name(s.words.text(own.plan)), Quota: own.quota, Anchor: unpackDate(a.anchor)}
	ok = a.isOpen()
	if agency := a.agency.at(at); agency != 0 {
		ok = s.inheritTerms(&t, agency-1, at) && ok
	}
	return p.text(i), t, ok
}

// inheritTerms gives t what a sub-client has from the agency in row n. An agency's own agency counts for nothing.
func (s *state) inheritTerms(t *access.Terms, n uint32, at int64) (open bool) {
	p, i := s.accounts.at(n)
	agency := &p.rows[i]
	t.Plan = plan.Name(s.words.text(agency.own.at(at).plan))
	t.Anchor = unpackDate(agency.anchor)
	t.Agency = p.text(i)
	return agency.isOpen()
}

func packDate(d plan.Date) int32 { return int32(d.Year<<9 | int(d.Month)<<5 | d.Day) }

func unpackDate(n int32) plan.Date {
	return plan.Date{Year: int(n >> 9), Month: time.Month(n >> 5 & 15), Day: int(n & 31)}
}
