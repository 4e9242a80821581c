package keyring

import (
	"fmt"
	"time"

	"lieudit/eventstore"
	"lieudit/schemas/event"
	"lieudit/schemas/token"
)

// wanted are the categories that say all there is to know about credentials.
var wanted = eventstore.Filter{"account", "token"}

// fold applies one recorded event. Personal fields stay sealed: the ring needs none, and so no vault.
// An event it does not know is an error: it may be one that takes a key away.
func (s *state) fold(r eventstore.Recorded) error {
	e, err := event.Decode(r.Type, r.Data)
	if err == nil {
		err = s.apply(r, e)
	}
	if err != nil {
		return fmt.Errorf("%s@%d: %w", r.Stream, r.Revision, err)
	}
	s.changes++
	return nil
}

func (s *state) apply(r eventstore.Recorded, e event.Event) error {
	id := eventstore.Subject(r.Stream)
	switch e := e.(type) {
	case event.AccountOpened:
		return s.open(id, e)
	case event.PlanChanged:
		return s.change(id, func(a *account) {
			a.own.set(terms{e.Quota, s.words.of(string(e.To))}, e.Effective, r.Time)
		})
	case event.AgencyJoined:
		return s.move(id, e.Agency, r.Time, e.Effective)
	case event.AgencyLeft:
		return s.move(id, "", r.Time, e.Effective)
	case event.AccountClosed:
		return s.change(id, func(a *account) { a.closed = true })
	case event.SecretKeyIssued:
		return s.issue(issued{id, e.Key, e.Hint, e.Hash, nil, secret, ""})
	case event.PublishableKeyIssued:
		return s.issue(issued{id, e.Key, e.Hint, e.Hash, e.Origins, publishable, ""})
	case event.TokenIssued:
		return s.issue(issued{e.Account, e.Token, e.Hint, e.Hash, nil, area, e.Role})
	case event.KeyOriginsChanged:
		return s.changeOrigins(e)
	case event.KeyRevoked:
		return s.revoke(e.Hash)
	case event.TokenRevoked:
		return s.revoke(e.Hash)
	case event.AgencyActivated, event.AccountErased, event.AccountActionRefused, event.AccountEventVoided, event.TokenEventVoided: // change nothing that a key gives
		return nil
	default:
		return fmt.Errorf("%s is not for a key ring", r.Type)
	}
}

func (s *state) open(id string, e event.AccountOpened) error {
	agency, err := s.owner(e.Agency)
	if err != nil {
		return err
	}
	return s.change(id, func(a *account) {
		a.opened, a.anchor = true, packed(e.Anchor)
		a.own.value = terms{e.Quota, s.words.of(string(e.Plan))}
		a.agency.value = agency
	})
}

// change rewrites the row of an account.
func (s *state) change(id string, f func(*account)) error {
	n, err := s.accountRow(id)
	if err != nil {
		return err
	}
	p, i := s.accounts.at(n)
	changed := p.rows[i]
	f(&changed)
	s.accounts.set(n, changed, p.text(i), nil)
	return nil
}

// owner is how rows name an account: its row + 1, or 0 for nobody.
func (s *state) owner(id string) (uint32, error) {
	if id == "" {
		return 0, nil
	}
	n, err := s.accountRow(id)
	return n + 1, err
}

func (s *state) move(id, to string, said, effective time.Time) error {
	agency, err := s.owner(to)
	if err != nil {
		return err
	}
	return s.change(id, func(a *account) { a.agency.set(agency, effective, said) })
}

// issued is what the three events that issue something have in common.
type issued struct {
	account, id, hint string
	hash              []byte
	origins           []string
	kind              kind
	role              string
}

func (s *state) issue(i issued) error {
	h, err := hashOf(i.hash)
	if err != nil {
		return err
	}
	owner, err := s.owner(i.account)
	if err != nil {
		return err
	}
	k := key{hash: h, account: owner, idLen: uint16(len(i.id)), kind: i.kind, role: s.words.of(i.role)}
	return s.put(k, i.id+i.hint, i.origins)
}

func (s *state) changeOrigins(e event.KeyOriginsChanged) error {
	h, err := hashOf(e.Hash)
	if err != nil {
		return err
	}
	if k, ok := s.key(&h); ok {
		return s.put(*k.key, k.text, e.Origins)
	}
	return nil
}

func (s *state) revoke(hash []byte) error {
	h, err := hashOf(hash)
	if err == nil {
		s.drop(&h)
	}
	return err
}

func hashOf(b []byte) (token.Hash, error) {
	if len(b) != len(token.Hash{}) {
		return token.Hash{}, fmt.Errorf("hash of %d bytes", len(b))
	}
	return token.Hash(b), nil
}
