// Package grant is what a valid key or token grants: the facts behind authentication, plan checks and quotas. The key ring
// (projections/keyring) makes a Grant or a TokenGrant from the events of an account, and the API reads it. Terms that change
// over time are a Scheduled value.
package grant

import (
	"iter"
	"time"

	"lieudit/schemas/plan"
	"lieudit/schemas/token"
)

// Grant is what an API key grants at one instant. It is shared and must not be changed.
type Grant struct {
	KeyID   string
	Kind    token.Kind // Secret or Publishable
	Hint    string
	Origins []string // of a publishable key, in canonical form
	Account string
	Terms
	Stopped bool // the account, or its agency, has an event that cannot be used, so the other fields are not reliable
}

// Terms are the conditions of an account at one instant. A sub-client has its agency's plan and anchor.
type Terms struct {
	Plan   plan.Name
	Quota  int64
	Anchor plan.Date
	Agency string // the account this one is a sub-client of, or ""

	AgencyQuota int64 // that account's; 0 without one
}

// Membership makes an account a sub-client of an agency; the zero Membership is that of an account without an agency. An
// account opened as a sub-client is one at once. One that joins becomes one later, unless its agency is closed first.
type Membership struct {
	Agency string
	Begins time.Time // when a scheduled join takes effect; zero if it took effect at once
}

// IsVoid reports whether the agency was closed before the membership began, so that it never begins. A zero agencyClosed means
// that the agency is open.
func (m Membership) IsVoid(agencyClosed time.Time) bool {
	return m.Agency != "" && !agencyClosed.IsZero() && agencyClosed.Before(m.Begins)
}

// MembershipFrom is the membership that an event gives an account: from effective on, decided when it was recorded.
func MembershipFrom(agency string, effective, recorded time.Time) Membership {
	if agency == "" || !effective.After(recorded) {
		return Membership{Agency: agency}
	}
	return Membership{agency, effective}
}

// Role is what a customer-area token may do.
type Role string

const (
	RoleOperator Role = "operator" // everything
	RoleCustomer Role = "customer" // one account
	RoleAgency   Role = "agency"   // an agency's sub-clients
	RoleBilling  Role = "billing"  // usage of all accounts, the list of them, and the labels of their keys
	RoleAuditor  Role = "auditor"  // history of all accounts, and the labels of their keys
)

// TokenGrant is what a customer-area token grants.
type TokenGrant struct {
	TokenID string
	Session string // the session that the request was made in; empty if it was made with the token itself
	Hint    string
	Role    Role
	Account string // for RoleCustomer and RoleAgency
	Stopped bool   // an event of the token, or of its account, cannot be used: the token grants nothing until that is repaired
}

// Scheduled is a value with at most one change scheduled for the future. A later Set replaces a change that has not begun. The
// zero Scheduled has the zero value at every instant. It is not safe for concurrent use.
type Scheduled[T any] struct {
	current T
	next    *scheduledChange[T]
}

type scheduledChange[T any] struct {
	from  time.Time
	value T
}

// Set gives the value from an instant on. recorded is when that was decided, and must not be before the recorded of the last
// Set.
func (s *Scheduled[T]) Set(value T, from, recorded time.Time) {
	s.current, s.next = s.At(recorded), nil
	if from.After(recorded) {
		s.next = &scheduledChange[T]{from, value}
		return
	}
	s.current = value
}

// At is the value at an instant, which must not be earlier than the recorded of the last Set.
func (s *Scheduled[T]) At(t time.Time) T {
	if s.next != nil && !t.Before(s.next.from) {
		return s.next.value
	}
	return s.current
}

// All yields the value in force at the last Set, and the one that is scheduled since, whether it has begun or not.
func (s Scheduled[T]) All() iter.Seq[T] {
	return func(yield func(T) bool) {
		if yield(s.current) && s.next != nil {
			yield(s.next.value)
		}
	}
}

// Drop takes out the values for which isVoid reports true, as if they had never been set: a void change never begins, and a
// void current value becomes the zero value.
func (s *Scheduled[T]) Drop(isVoid func(T) bool) {
	if s.next != nil && isVoid(s.next.value) {
		s.next = nil
	}
	if isVoid(s.current) {
		var zero T
		s.current = zero
	}
}

// Next is the value scheduled for after t, and when it begins. ok is false if there is none.
func (s *Scheduled[T]) Next(t time.Time) (value T, from time.Time, ok bool) {
	if s.next == nil || !t.Before(s.next.from) {
		return value, from, false
	}
	return s.next.value, s.next.from, true
}
