// Package account handles the commands on accounts: opening, plan, agency, closing and erasure, and the keys. One account is
// one stream. Its rules (cap of keys, origins, agencies) are decided on that stream alone, so that they hold exactly for any
// number of instances. Decisions that involve the agency read its stream just before, so that this part may be a moment old.
// An agency that was closed before a join began ends the join. The account's own stream does not show that, so
// dropVoidMemberships applies it before a decision or a reader sees the State.
//
//	Accounts.ChangePlan, .IssueKey, .JoinAgency, …
//	  │ readAgencies           what the States of its agencies say now
//	  │ commands.Handler       folds the account's own State with Evolve; dropVoidMemberships
//	  └ changePlan, issueKey…  pure decisions: State ──> commands.Result (events, or a refusal that is recorded)
package account

import (
	"time"

	"lieudit/commands"
	"lieudit/schemas/event"
	"lieudit/schemas/grant"
	"lieudit/schemas/plan"
	"lieudit/schemas/token"
)

// State is the fold of an account's stream. The zero State is an account that was never opened. Handlers share a State between
// commands, and only Evolve changes it.
type State struct {
	ID       string
	Name     event.Personal // sealed in decisions; in clear in what CurrentState and StateAsOf return
	OpenedAt time.Time
	ClosedAt time.Time
	Erased   bool // its personal data cannot be read any more

	Anchor   plan.Date                         // the day whose number begins each monthly period
	Terms    grant.Scheduled[Terms]            // its own, now and next; a sub-client is limited by its agency's plan, see PlanOf
	Agency   grant.Scheduled[grant.Membership] // the account that it is a sub-client of; see agencyAt
	IsAgency bool                              // it may have sub-clients
	Keys     map[string]*Key                   // by id, revoked ones included
}

// Terms are an account's own plan and its quota, in requests a month.
type Terms struct {
	Plan  plan.Name
	Quota int64
}

// Key is an API key of either kind, valid until it is revoked.
type Key struct {
	ID, Hint  string
	Label     event.Personal // as Reason: sealed in decisions, in clear in what commands and StateAsOf return
	Kind      token.Kind
	Hash      []byte   // SHA-256 of its token
	Token     string   // in clear, of a publishable key alone
	Origins   []string // from which a browser may use a publishable key
	IssuedAt  time.Time
	IssuedBy  string
	RevokedAt time.Time
	RevokedBy string
	Reason    event.Personal // of the revocation
	Replaces  string         // the id of the key whose place it takes

	OmitsLabel, OmitsReason bool // a command left it out, because the vault gave no data key at once
}

// Active reports whether the key has not been revoked. A key of a closed account can be active, but does not work.
func (k *Key) Active() bool { return k.RevokedAt.IsZero() }

// Aggregate describes how account streams are folded.
var Aggregate = commands.Aggregate[State]{Category: "account", Evolve: Evolve}

// Evolve changes the state by one record.
func Evolve(s *State, rec commands.Record) {
	switch e := rec.Event.(type) {
	case event.AccountOpened:
		*s = State{ID: e.Account, Name: e.Name, OpenedAt: rec.At, Anchor: e.Anchor, Keys: map[string]*Key{}}
		s.Terms.Set(Terms{e.Plan, e.Quota}, rec.At, rec.At)
		s.Agency.Set(grant.Membership{Agency: e.Agency}, rec.At, rec.At)
	case event.PlanChanged:
		s.Terms.Set(Terms{e.To, e.Quota}, e.Effective, rec.At)
	case event.AgencyActivated:
		s.IsAgency = true
	case event.AgencyJoined:
		s.Agency.Set(grant.MembershipFrom(e.Agency, e.Effective, rec.At), e.Effective, rec.At)
	case event.AgencyLeft:
		s.Agency.Set(grant.Membership{}, e.Effective, rec.At)
	case event.AccountClosed:
		s.ClosedAt = rec.At
	case event.AccountErased:
		s.erase()
	default:
		evolveKeys(s, rec)
	}
}

// erase drops the personal texts. The vault alone does not hide them: it may keep the data key in memory for a while after
// another instance has destroyed it.
func (s *State) erase() {
	s.Name, s.Erased = "", true
	for _, k := range s.Keys {
		k.Label, k.Reason = "", ""
	}
}

// evolveKeys changes the keys by one record. It skips an event about a key that the state does not have, because a correction
// voided the event that issued it.
func evolveKeys(s *State, rec commands.Record) {
	if s.Keys == nil {
		s.Keys = map[string]*Key{}
	}
	switch e := rec.Event.(type) {
	case event.SecretKeyIssued:
		s.Keys[e.Key] = &Key{ID: e.Key, Kind: token.Secret, Label: e.Label, Hint: e.Hint, Hash: e.Hash,
			IssuedAt: rec.At, IssuedBy: rec.Actor}
	case event.PublishableKeyIssued:
		s.Keys[e.Key] = &Key{ID: e.Key, Kind: token.Publishable, Label: e.Label, Hint: e.Hint, Hash: e.Hash,
			Token: e.Token, Origins: e.Origins, IssuedAt: rec.At, IssuedBy: rec.Actor}
	case event.KeyRotationStarted:
		if k, ok := s.Keys[e.Key]; ok {
			k.Replaces = e.Replaces
		}
	case event.KeyRevoked:
		if k, ok := s.Keys[e.Key]; ok {
			k.RevokedAt, k.RevokedBy = rec.At, rec.Actor
			if !s.Erased {
				k.Reason = rec.Reason
			}
		}
	case event.KeyOriginsChanged:
		if k, ok := s.Keys[e.Key]; ok {
			k.Origins = e.Origins
		}
	}
}

// Exists reports whether the account was opened. A closed account exists.
func (s *State) Exists() bool { return s.ID != "" }

// Closed reports whether the account was closed.
func (s *State) Closed() bool { return !s.ClosedAt.IsZero() }

// AgencyAt returns the account that this one is a sub-client of at an instant, or "".
func (s *State) AgencyAt(t time.Time) string { return s.Agency.At(t).Agency }

// dropVoidMemberships takes out the memberships that never begin, because the agency was closed before.
func (s *State) dropVoidMemberships(agencies agencyStates) {
	s.Agency.Drop(func(m grant.Membership) bool { return m.IsVoid(agencies[m.Agency].closed) })
}

// countActivePublishableKeys counts the keys that the plan's cap limits.
func (s *State) countActivePublishableKeys() int {
	n := 0
	for _, k := range s.Keys {
		if k.Kind == token.Publishable && k.Active() {
			n++
		}
	}
	return n
}

// period returns the account's monthly period. A sub-client's periods are its agency's.
func (s *State) period(agency agencyState, now time.Time) plan.Period {
	anchor := s.Anchor
	if s.AgencyAt(now) != "" && agency.exists {
		anchor = agency.anchor
	}
	return plan.PeriodAt(anchor, now)
}
