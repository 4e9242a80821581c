// Package customers acts on a simulated service, and knows what each of its answers may be.
package customers

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"sync"
	"time"
)

// Act is one thing that somebody does on a day, as plain data. Its Seed decides the details.
type Act struct {
	At       time.Duration `json:"at"` // after the beginning of the day; an account's acts follow each other
	Account  int           `json:"account"`
	Instance int           `json:"instance"`
	Kind     string        `json:"kind"`
	Seed     uint64        `json:"seed"`
}

// kind is a row of the table of acts: how often it happens, and what is done.
type kind struct {
	name   string
	weight int
	do     func(*actor, context.Context)
	writes bool
}

// kinds are all acts, weighted as in life: mostly requests, few changes of accounts.
func kinds() []kind {
	return []kind{
		{"ask", 30, (*actor).ask, false},
		{"ask at once", 8, (*actor).askAtOnce, false},
		{"ask with a revoked key", 3, (*actor).askWithRevokedKey, false},
		{"ask for nothing", 3, (*actor).askForNothing, false},
		{"issue a key", 4, (*actor).issueKey, true},
		{"revoke a key", 3, (*actor).revokeKey, true},
		{"open a referential", 4, (*actor).openReferential, true},
		{"archive a referential", 1, (*actor).archiveReferential, true},
		{"put a site", 12, (*actor).putSite, true},
		{"deactivate a site", 4, (*actor).deactivateSite, true},
		{"sync", 8, (*actor).syncSites, true},
		{"sync twice", 3, (*actor).syncTwice, true},
		{"sync two sets at once", 3, (*actor).syncAtOnce, true},
		{"search", 6, (*actor).searchSites, false},
		{"export", 2, (*actor).exportSites, false},
		{"read changes", 2, (*actor).readChanges, false},
		{"show the account", 3, (*actor).showAccount, false},
		{"list keys", 3, (*actor).listKeys, false},
		{"read history", 3, (*actor).readHistory, false},
		{"read usage", 4, (*actor).readUsage, false},
		{"bill", 1, (*actor).bill, false},
		{"reconcile", 1, (*actor).reconcile, false},
		{"raise the quota", 1, (*actor).raiseQuota, true},
		{"rebuild", 1, (*actor).rebuild, false},
		{"show projections", 1, (*actor).showProjections, false},
		{"close the account", 1, (*actor).closeAccount, true},
		{"erase the account", 1, (*actor).eraseAccount, true},
	}
}

// IsWrite says whether an act changes what others see.
func (a Act) IsWrite() bool {
	i := slices.IndexFunc(kinds(), func(k kind) bool { return k.name == a.Kind })
	return i >= 0 && kinds()[i].writes
}

// Generate draws a day's acts of some accounts, in the order of time.
func Generate(random *rand.Rand, accounts, acts, instances int, length time.Duration) []Act {
	all, total := kinds(), 0
	for _, k := range all {
		total += k.weight
	}
	drawn := make([]Act, acts)
	for i := range drawn {
		at := random.IntN(total)
		k := slices.IndexFunc(all, func(k kind) bool { at -= k.weight; return at < 0 })
		drawn[i] = Act{At: time.Duration(random.Int64N(int64(length))), Account: random.IntN(accounts), Instance: random.IntN(instances),
			Kind: all[k].name, Seed: random.Uint64()}
	}
	slices.SortStableFunc(drawn, func(a, b Act) int { return int(a.At - b.At) })
	return drawn
}

// Customers are all who act, and what they know.
type Customers struct {
	world    World
	begin    time.Time // elapsed times count from here
	accounts []*account
}

// New returns customers of some accounts, none of which is open yet. Every fourth account is small: its quota is used up now and then.
func New(world World, accounts int) *Customers {
	c := &Customers{world: world, begin: time.Now()}
	for i := range accounts {
		a := &account{ID: fmt.Sprintf("compte-%d", i), Plan: "STARTER", quota: known(int64(500)), isOpen: known(false), isClosed: known(false), isErased: known(false),
			referentials: map[string]*referential{}, used: map[string]*count{}, counted: map[string]int64{}, unknownReferentials: map[string]bool{}}
		a.Name = mark(a.ID, "Mairie")
		switch i % 4 {
		case 0:
			a.quota = known(int64(60))
		case 1:
			a.Plan, a.quota = "DISCOVERY", known(int64(40))
		}
		c.accounts = append(c.accounts, a)
	}
	return c
}

// Snapshot is what all know at an instant.
type Snapshot []*account

// Snapshot copies what all know, and Restore goes back to it, as after the log was restored to an older copy.
func (c *Customers) Snapshot() (s Snapshot) {
	for _, a := range c.accounts {
		s = append(s, a.clone())
	}
	return s
}

// Restore makes what was known at a snapshot the truth. Keys that were issued after it are no keys any more.
func (c *Customers) Restore(s Snapshot) {
	for i, a := range s {
		restored := a.clone()
		restored.lostKeys = append([]*key(nil), a.lostKeys...)
		for _, k := range c.accounts[i].keys {
			if !slices.ContainsFunc(a.keys, func(other *key) bool { return other.ID == k.ID }) {
				restored.lostKeys = append(restored.lostKeys, &key{ID: k.ID, Token: k.Token, isRevoked: known(true), revokedAt: c.elapsed()})
			}
		}
		c.accounts[i] = restored
	}
}

// RebuildAll is what an operator does after an older copy of the log was put back.
func (c *Customers) RebuildAll(ctx context.Context) {
	if token, ok := c.world.OperatorToken(); ok {
		operator := &client{world: c.world, token: token}
		r := Request{Method: "POST", Path: "/customer-area/v1/projections:rebuild", Body: []byte("{}")}
		operator.expect(r, operator.persist(ctx, 0, Area, r).Answer, http.StatusAccepted)
	}
}

// Play has the acts of a day done. It returns when all are over.
func (c *Customers) Play(ctx context.Context, acts []Act) {
	begun := time.Now()
	var playing sync.WaitGroup
	for i := range c.accounts {
		playing.Go(func() {
			for _, act := range acts {
				if act.Account == i {
					time.Sleep(act.At - time.Since(begun))
					c.do(ctx, act)
				}
			}
		})
	}
	playing.Wait()
}

// do has one act done. An account that is not open is opened first.
func (c *Customers) do(ctx context.Context, act Act) {
	a := c.newActor(act)
	if a == nil {
		return
	}
	if !a.account.isOpen.is(true) {
		a.openAccount(ctx)
	}
	if !a.account.isOpen.is(true) {
		return
	}
	all := kinds()
	if i := slices.IndexFunc(all, func(k kind) bool { return k.name == act.Kind }); i >= 0 {
		all[i].do(a, ctx)
	}
}

// actor does one act: as the customer of an account, and as an operator.
type actor struct {
	*Customers
	act      Act
	account  *account
	random   *rand.Rand
	operator *client
}

// newActor returns the actor of an act; nil while there is no operator's token.
func (c *Customers) newActor(act Act) *actor {
	token, ok := c.world.OperatorToken()
	if !ok {
		return nil
	}
	return &actor{c, act, c.accounts[act.Account], rand.New(rand.NewPCG(act.Seed, 7)), &client{world: c.world, token: token}}
}

// customer is the client with a key of the account.
func (a *actor) customer(k *key) *client {
	return &client{world: a.world, token: k.Token, marker: a.account.ID}
}

// elapsed is the elapsed time since the beginning, never 0.
func (c *Customers) elapsed() int64 { return int64(time.Since(c.begin)) + 1 }

// knownEverywhere is how long it may take until every instance knows a new key.
const knownEverywhere = int64(time.Second)

// activeKey is one of the keys that are certainly valid; nil: there is none. A customer waits until every instance knows a new one.
func (a *actor) activeKey() *key {
	var active []*key
	for _, k := range a.account.keys {
		if k.isRevoked.is(false) {
			active = append(active, k)
		}
	}
	if len(active) == 0 || !a.account.isClosed.is(false) {
		return nil
	}
	k := active[a.random.IntN(len(active))]
	time.Sleep(time.Duration(k.issuedAt + knownEverywhere - a.elapsed()))
	return k
}

// area is a request to the customer area about the account.
func (a *actor) area(method, path string, body any) Request {
	r := Request{Method: method, Path: "/customer-area/v1/accounts/" + a.account.ID + path}
	if body != nil {
		r.Body = encode(body)
	}
	return r
}

// api is a request to the API.
func api(method, path string, body any) Request {
	r := Request{Method: method, Path: "/services/v1" + path}
	if body != nil {
		r.Body = encode(body)
	}
	return r
}

// countAnswer books what an answer to a key says of the books: what counts, by the specification, is every answer but those that are
// listed as not counted; of a failure and of a lost answer it is not known.
func (a *account) countAnswer(k *key, ans Answer) {
	n := count{}
	switch {
	case !ans.IsSent:
	case ans.Status == 0 || ans.Status >= 500:
		n.unknown = 1
	case slices.Contains([]int{400, 401, 403, 405, 413, 429}, ans.Status):
	default:
		n.served = 1
	}
	a.usedBy(k.ID).add(n)
	a.today.add(n)
}

// send sends one request with a key, books it, and checks what holds for every key.
func (a *actor) send(ctx context.Context, k *key, instance int, r Request) Answer {
	ans := a.customer(k).once(ctx, instance, API, r)
	a.book(k, r, ans)
	return ans
}

// book books an answer and checks that a valid key is not refused.
func (a *actor) book(k *key, r Request, ans Answer) {
	a.account.countAnswer(k, ans)
	if ans.Status == http.StatusUnauthorized && k.isRevoked.is(false) && a.account.isClosed.is(false) {
		a.world.Report(ActiveAccepted, "%s %s with the key %s of %s: %s", r.Method, r.Path, k.ID, a.account.ID, shorten(ans.Body))
	}
}

// persistent sends a request of a customer again while its outcome is not known. Each attempt is booked.
func (a *actor) persistent(ctx context.Context, k *key, r Request) (t tried) {
	for n := range attempts {
		t.Answer = a.send(ctx, k, a.act.Instance+n, r)
		if t.IsSent {
			t.sent++
		}
		if t.Status != 0 && t.Status < 500 {
			return t
		}
		t.isUnknown = t.isUnknown || t.IsSent
		time.Sleep(time.Duration(n+1) * retryPause)
	}
	return t
}
