package keyring

import (
	"fmt"
	"iter"
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	"lieudit/schemas/event"
	"lieudit/schemas/grant"
	"lieudit/schemas/plan"
	"lieudit/schemas/token"
)

// chance writes a random history of a few accounts into a ledger, and keeps the plainest possible account of it.
type chance struct {
	*rand.Rand
	*ledger
	now      time.Time
	accounts map[string]*plainAccount
	names    []string // of accounts, in the order they were opened
	keys     map[string]*grant.Grant
	passes   map[string]*grant.Pass
}

type plainAccount struct {
	terms  grant.Scheduled[terms]
	plan   grant.Scheduled[plan.Name]
	agency grant.Scheduled[string]
	anchor plan.Date
	closed bool
}

func newChance(seed uint64) *chance {
	return &chance{Rand: rand.New(rand.NewPCG(seed, 0)), ledger: newLedger(), now: start,
		accounts: map[string]*plainAccount{}, keys: map[string]*grant.Grant{}, passes: map[string]*grant.Pass{}}
}

func (c *chance) soon() time.Time { return c.now.Add(time.Duration(c.IntN(200)-20) * time.Hour) }

func (c *chance) plan() plan.Name { return plan.All()[c.IntN(len(plan.All()))].Name }

func (c *chance) name() string { return c.names[c.IntN(len(c.names))] }

func (c *chance) step() {
	c.now = c.now.Add(time.Duration(c.IntN(10)) * time.Hour)
	if len(c.names) < 2 {
		c.open()
		return
	}
	switch n := c.IntN(100); {
	case n < 8:
		c.open()
	case n < 20:
		c.change()
	case n < 32:
		c.move()
	case n < 34:
		c.close()
	case n < 65:
		c.issue()
	case n < 72:
		c.pass()
	case n < 80:
		c.origins()
	case n < 98:
		c.revoke()
	default:
		c.add("account-"+c.name(), c.now, event.AccountActionRefused{Action: "x"})
	}
}

func (c *chance) open() {
	id := fmt.Sprintf("%d-%x", len(c.names), c.Uint32())
	e := event.AccountOpened{Account: id, Plan: c.plan(), Quota: c.Int64N(1e6), Anchor: plan.Date{Year: 2020 + c.IntN(9), Month: 3, Day: 1 + c.IntN(31)}}
	if len(c.names) > 0 && c.IntN(3) == 0 {
		e.Agency = c.name()
	}
	a := &plainAccount{anchor: e.Anchor}
	a.terms.Set(terms{quota: e.Quota}, c.now, c.now)
	a.plan.Set(e.Plan, c.now, c.now)
	a.agency.Set(e.Agency, c.now, c.now)
	c.names, c.accounts[id] = append(c.names, id), a
	c.add("account-"+id, c.now, e)
}

func (c *chance) change() {
	id := c.name()
	e := event.PlanChanged{To: c.plan(), Quota: c.Int64N(1e6), Effective: c.soon()}
	c.accounts[id].terms.Set(terms{quota: e.Quota}, e.Effective, c.now)
	c.accounts[id].plan.Set(e.To, e.Effective, c.now)
	c.add("account-"+id, c.now, e)
}

func (c *chance) move() {
	id, to, at := c.name(), c.name(), c.soon()
	if c.IntN(2) == 0 {
		c.accounts[id].agency.Set("", at, c.now)
		c.add("account-"+id, c.now, event.AgencyLeft{Agency: to, Effective: at})
		return
	}
	c.accounts[id].agency.Set(to, at, c.now)
	c.add("account-"+id, c.now, event.AgencyJoined{Agency: to, Effective: at})
}

func (c *chance) close() {
	id := c.name()
	c.accounts[id].closed = true
	c.add("account-"+id, c.now, event.AccountClosed{})
}

func (c *chance) issue() {
	id, key := c.name(), fmt.Sprintf("key-%x", c.Uint64())
	h := hash(key)
	g := &grant.Grant{Key: key, Kind: token.Secret, Hint: "ld_sk_…" + key[:4], Account: id}
	if c.IntN(3) > 0 {
		c.add("account-"+id, c.now, event.SecretKeyIssued{Key: key, Hash: h[:], Hint: g.Hint})
	} else {
		g.Kind, g.Origins = token.Publishable, []string{"https://" + key}
		c.add("account-"+id, c.now, event.PublishableKeyIssued{Key: key, Hash: h[:], Hint: g.Hint, Origins: g.Origins})
	}
	c.keys[key] = g
}

func (c *chance) pass() {
	p := &grant.Pass{Token: fmt.Sprintf("t-%x", c.Uint64()), Hint: "…", Role: grant.Operator}
	if c.IntN(2) == 0 {
		p.Role, p.Account = grant.Agency, c.name()
	}
	h := hash(p.Token)
	c.passes[p.Token] = p
	c.add("token-"+p.Token, c.now, event.TokenIssued{Token: p.Token, Role: string(p.Role), Account: p.Account, Hash: h[:], Hint: p.Hint})
}

func (c *chance) origins() {
	for k, g := range c.any() {
		if g.Kind == token.Publishable {
			h := hash(k)
			g.Origins = []string{"https://" + k, fmt.Sprintf("https://%x.fr", c.Uint32())}
			c.add("account-"+g.Account, c.now, event.KeyOriginsChanged{Key: k, Hash: h[:], Origins: g.Origins})
			return
		}
	}
}

// any is the keys in an order that the seed decides.
func (c *chance) any() iter.Seq2[string, *grant.Grant] {
	names := slices.Sorted(maps.Keys(c.keys))
	c.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
	return func(yield func(string, *grant.Grant) bool) {
		for _, k := range names {
			if !yield(k, c.keys[k]) {
				return
			}
		}
	}
}

func (c *chance) revoke() {
	for k, g := range c.any() {
		h := hash(k)
		c.add("account-"+g.Account, c.now, event.KeyRevoked{Key: k, Hash: h[:]})
		delete(c.keys, k)
		break
	}
	if c.IntN(5) > 0 {
		return
	}
	for _, id := range slices.Sorted(maps.Keys(c.passes)) {
		h := hash(id)
		c.add("token-"+id, c.now, event.TokenRevoked{Token: id, Hash: h[:]})
		delete(c.passes, id)
		return
	}
}
