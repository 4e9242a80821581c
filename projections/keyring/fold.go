package keyring

import (
	"fmt"
	"time"

	"lieudit/eventstore"
	"lieudit/schemas/event"
	"lieudit/schemas/token"
)

// categories are the categories that say all there is to know about credentials.
var categories = eventstore.Filter{"account", "token"}

// foldEvent applies one recorded event. Personal fields stay sealed: the ring needs none, and so no vault.
// An event it does not know is an error: it may be one that takes a key away. One that cannot be used is an
// *eventstore.UnusableError.
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
		return s.updateAccount(id, func(a *account) { a.closed = true })
	case event.SecretKeyIssued:
		return s.issueCredential(issuedCredential{id, e.Key, e.Hint, e.Hash, nil, secret, ""})
	case event.PublishableKeyIssued:
		return s.issueCredential(issuedCredential{id, e.Key, e.Hint, e.Hash, e.Origins, publishable, ""})
	case event.TokenIssued:
		return s.issueCredential(issuedCredential{e.Account, e.Token, e.Hint, e.Hash, nil, areaToken, e.Role})
	case event.KeyOriginsChanged:
		return s.changeOrigins(e)
	case event.KeyRevoked:
		return s.revokeCredential(e.Hash)
	case event.TokenRevoked:
		return s.revokeCredential(e.Hash)
	case event.AgencyActivated, event.AccountErased, event.AccountActionRefused, event.AccountEventVoided, event.TokenEventVoided: // change nothing that a key gives
		return nil
	default:
		return fmt.Errorf("%s is not for a key ring", r.Type)
	}
}

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

// updateAccount rewrites the row of an account.
func (s *state) updateAccount(id string, f func(*account)) error {
	n, err := s.ensureAccount(id)
	if err != nil {
		return err
	}
	p, i := s.accounts.at(n)
	changed := p.rows[i]
	f(&changed)
	s.accounts.set(n, changed, p.text(i), nil)
	return nil
}

// accountRef is how rows name an account: its row + 1, or 0 for nobody.
func (s *state) accountRef(id string) (uint32, error) {
	if id == "" {
		return 0, nil
	}
	n, err := s.ensureAccount(id)
	return n + 1, err
}

func (s *state) changeAgency(id, to string, recorded, effective time.Time) error {
	agency, err := s.accountRef(to)
	if err != nil {
		return err
	}
	return s.updateAccount(id, func(a *account) { a.agency.set(agency, effective, recorded) })
}

// issuedCredential is what the three events that issue something have in common.
type issuedCredential struct {
	account, id, hint string
	hash              []byte
	origins           []string
	kind              credentialKind
	role              string
}

func (s *state) issueCredential(i issuedCredential) error {
	h, err := hashOf(i.hash)
	if err != nil {
		return err
	}
	owner, err := s.accountRef(i.account)
	if err != nil {
		return err
	}
	k := key{hash: h, account: owner, idLen: uint16(len(i.id)), kind: i.kind, role: s.words.intern(i.role)}
	return s.putKey(k, i.id+i.hint, i.origins)
}

func (s *state) changeOrigins(e event.KeyOriginsChanged) error {
	h, err := hashOf(e.Hash)
	if err != nil {
		return err
	}
	if k, ok := s.findKey(&h); ok {
		return s.putKey(*k.key, k.text, e.Origins)
	}
	return nil
}

func (s *state) revokeCredential(hash []byte) error {
	h, err := hashOf(hash)
	if err == nil {
		s.dropKey(&h)
	}
	return err
}

func hashOf(b []byte) (token.Hash, error) {
	if len(b) != len(token.Hash{}) {
		return token.Hash{}, fmt.Errorf("hash of %d bytes", len(b))
	}
	return token.Hash(b), nil
}
