// Package account decides what may happen to an account: its opening, plan, agency and closing, and the
// issue and end of its keys. One account is one stream; its invariants (key cap, origin rules, agency
// rules) are decided on that stream alone, with what its agency's stream said a moment before.
package account

import (
	"time"

	"lieudit/commands"
	"lieudit/schemas/access"
	"lieudit/schemas/event"
	"lieudit/schemas/plan"
	"lieudit/schemas/token"
)

// State is an account as its stream tells it.
type State struct {
	ID       string
	Name     event.Personal // sealed in decisions
	OpenedAt time.Time
	ClosedAt time.Time
	Erased   bool // its personal data cannot be read any more
	Anchor   plan.Date
	Terms    access.Scheduled[Terms]  // its own; a sub-client's plan is its agency's
	Agency   access.Scheduled[string] // the account it is a sub-client of, or ""
	IsAgency bool
	Keys     map[string]*Key
}

// Terms are an account's own plan and monthly volume.
type Terms struct {
	Plan  plan.Name
	Quota int64
}

// Key is an API key of either kind, valid until it is revoked.
type Key struct {
	ID, Label, Hint string
	Kind            token.Kind
	Hash            []byte
	Token           string   // of a publishable key
	Origins         []string // of a publishable key
	IssuedAt        time.Time
	IssuedBy        string
	RevokedAt       time.Time
	RevokedBy       string
	Reason          string // of the revocation
}

// Active says whether the key can still be used.
func (k *Key) Active() bool { return k.RevokedAt.IsZero() }

// Aggregate is how account streams are folded.
var Aggregate = commands.Aggregate[State]{Category: "account", Evolve: Evolve}

// Evolve changes the state by one fact.
func Evolve(s *State, rec commands.Record) {
	switch e := rec.Event.(type) {
	case event.AccountOpened:
		*s = State{ID: e.Account, Name: e.Name, OpenedAt: rec.At, Anchor: e.Anchor, Keys: map[string]*Key{}}
		s.Terms.Set(Terms{e.Plan, e.Quota}, rec.At, rec.At)
		s.Agency.Set(e.Agency, rec.At, rec.At)
	case event.PlanChanged:
		s.Terms.Set(Terms{e.To, e.Quota}, e.Effective, rec.At)
	case event.AgencyActivated:
		s.IsAgency = true
	case event.AgencyJoined:
		s.Agency.Set(e.Agency, e.Effective, rec.At)
	case event.AgencyLeft:
		s.Agency.Set("", e.Effective, rec.At)
	case event.AccountClosed:
		s.ClosedAt = rec.At
	case event.AccountErased:
		s.Name, s.Erased = "", true
	default:
		evolveKeys(s, rec)
	}
}

// evolveKeys leaves alone what is said of a key that the state does not have: a correction names the event that issued it.
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
	case event.KeyRevoked:
		if k, ok := s.Keys[e.Key]; ok {
			k.RevokedAt, k.RevokedBy, k.Reason = rec.At, rec.Actor, rec.Reason
		}
	case event.KeyOriginsChanged:
		if k, ok := s.Keys[e.Key]; ok {
			k.Origins = e.Origins
		}
	}
}

// Exists says whether the account was ever opened.
func (s *State) Exists() bool { return s.ID != "" }

// Closed says whether the account was closed.
func (s *State) Closed() bool { return !s.ClosedAt.IsZero() }

// countActivePublishableKeys counts the publishable keys that hold a slot.
func (s *State) countActivePublishableKeys() int {
	n := 0
	for _, k := range s.Keys {
		if k.Kind == token.Publishable && k.Active() {
			n++
		}
	}
	return n
}

// nextPeriodStart is the instant the account's next monthly period begins.
func (s *State) nextPeriodStart(now time.Time) time.Time { return plan.PeriodAt(s.Anchor, now).End() }
