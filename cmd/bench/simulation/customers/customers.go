// Package customers plays the users of a service: operators, customers, agencies with their sub-clients, auditors, billing. Their acts are
// plain data, drawn from a seed before anything is played, so that a script can be shortened and played again.
//
//	Generate ──> []Act ──> Customers.Play ──> World.Call ──> an instance
//	                             │               │
//	                             └──> model.Model <── what it answered
//	                                      ^
//	       Customers.CheckQuiet, at quiet moments
//
// One client in five with a key gives up soon. Half of all clients retry a request that failed or got no answer; the other half leave it, so
// that only the service finishes what a failure left half done.
//
// Acts name accounts, referentials, sites and instances by numbers. The key that an act uses is one that the model knows at that time. So an
// act remains valid after earlier acts were removed or refused.
package customers

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/singleflight"

	"lieudit/cmd/bench/model"
)

// Surface is one of the two interfaces of an instance.
type Surface int

const (
	API  Surface = iota // /services/v1
	Area                // /customer-area/v1
)

// Request is a request of a client.
type Request struct {
	Method, Path string // the path with its query, from the root
	Header       http.Header
	Body         []byte
}

// Answer is what a client gets.
type Answer = model.Answer

// World is the service that customers use: some instances of it.
type World interface {
	// Call sends a request to an instance and returns its answer, or one without a Status if the instance died or took too long.
	Call(ctx context.Context, instance int, s Surface, r Request) Answer
	// Instances returns the number of instances.
	Instances() int
	// Wall returns the wall clock of an instance, and Deaths how often it was killed, or ended while its usage log was out of order.
	Wall(instance int) time.Time
	Deaths(instance int) int
	// OperatorToken returns the first operator's token, or false while there is none.
	OperatorToken() (string, bool)
	// IsDisturbed reports whether something fails, or did a moment ago: then answers of 5xx are expected.
	IsDisturbed() bool
	// Report reports that a rule is broken.
	Report(rule Rule, format string, args ...any)
}

// Customers are all users. Several acts may be played at once.
type Customers struct {
	Model        *model.Model
	world        World
	accounts     int             // how many there are
	addresses    []Address       // addresses in the questions
	hasRegion    bool            // instances have a vintage, with addresses, and a road network
	opening      []chan struct{} // by account: holds a value while it is being opened
	quietMoments int             // so far
	deaths       []int           // of each instance, at the last quiet moment

	issued    atomic.Int64 // keys for acts that had none
	issuing   singleflight.Group
	mu        sync.Mutex
	followers map[string]follower // followers of the changes, by account
}

// New returns customers of some accounts, none of which is open yet. addresses are those of the vintage that all instances serve; if there are
// none, the instances serve neither a vintage nor a road network.
func New(world World, accounts int, addresses []Address) *Customers {
	c := &Customers{addresses: addresses, hasRegion: len(addresses) > 0, Model: model.New(world.Report), world: world,
		accounts: accounts, deaths: make([]int, world.Instances()), followers: map[string]follower{}}
	if !c.hasRegion {
		c.addresses = []Address{{ID: "48095_0275_00003", Label: "3 Rue de l'Ermitage 48000 Mende", Line: "3 Rue de l'Ermitage", Postcode: "48000",
			Town: "Mende", Lon: 3.501, Lat: 44.518}}
	}
	for range max(accounts, agencyCount) {
		c.opening = append(c.opening, make(chan struct{}, 1))
	}
	return c
}

// tries is how often a client sends a request that fails or gets no answer, unless it never retries.
const tries = 3

// retryDelay is the first step of SPEC 7.5 for a 503. The later ones are longer than a day lasts here.
const retryDelay = 5 * time.Second

// message is what send puts into a request.
type message struct {
	method, path string // after the base of the surface
	body         any    // as JSON; nil: none; []byte: as it is
	header       http.Header
}

// send makes an operation of a message and sends it, with the retries of a sensible client, each on another instance.
func (c *Customers) send(ctx context.Context, op model.Operation, m message) Answer {
	for try := 0; ; try++ {
		a := c.sendOnce(ctx, op, m)
		if a.Status != 0 && a.Status < 500 || op.SendsOnce || try == tries-1 || c.mayFail(op, a) {
			return a
		}
		select {
		case <-ctx.Done():
			return a
		case <-time.After(retryDelay):
		}
		op.Instance = (op.Instance + 1) % c.world.Instances()
	}
}

// promptly is the longest that an answer takes while nothing fails. Elapsed time passes only when everybody waits, so this is the time that the
// service waits: until counts are shown, until its own write is shown, for another instance.
const promptly = 500 * time.Millisecond

// sendOnce sends an operation with a message to its instance.
func (c *Customers) sendOnce(ctx context.Context, op model.Operation, m message) Answer {
	op.Text = m.method + " " + m.path
	r, surface := Request{Method: m.method, Path: "/customer-area/v1" + m.path, Header: http.Header{}}, Area
	for name, values := range m.header {
		r.Header[name] = values
	}
	if op.Key != "" {
		r.Path, surface = "/services/v1"+m.path, API
		r.Header.Set("Authorization", "Bearer "+c.secret(op).Token)
		if op.Origin != "" {
			r.Header.Set("Origin", op.Origin)
		}
	} else {
		c.authenticate(r.Header, op.Token)
	}
	if raw, isRaw := m.body.([]byte); isRaw {
		r.Body = raw
	} else if m.body != nil {
		r.Body, _ = json.Marshal(m.body)
		r.Header.Set("Content-Type", "application/json")
	}
	call := c.Model.Begin(op, c.world.Wall(op.Instance))
	wasDisturbed, began := c.world.IsDisturbed(), time.Now()
	if op.Patience > 0 && op.Key != "" {
		limited, hangUp := context.WithTimeout(ctx, op.Patience)
		defer hangUp()
		ctx = limited
	}
	a := c.world.Call(ctx, op.Instance, surface, r)
	took := time.Since(began)
	c.Model.End(call, a, c.world.Wall(op.Instance))
	isDisturbed := wasDisturbed || c.world.IsDisturbed()
	if took > promptly && !isDisturbed {
		c.world.Report(model.AnswersPromptly, "%s %s on instance %d took %v: %d", op.Act, op.Text, op.Instance, took, a.Status)
	}
	if a.Status >= 500 && !isDisturbed && !c.mayFail(op, a) && !c.Model.IsUnreadable(op.Account) {
		c.world.Report(model.NoFailureAlone, "%s %s: %d %s", op.Act, op.Text, a.Status, a.Body)
	}
	return a
}

// mayFail reports whether a failure is normal for a service without a vintage and a road network.
func (c *Customers) mayFail(op model.Operation, a Answer) bool {
	needsRegion := op.Endpoint != "GET /me" && (op.Service == model.Addresses || op.Service == model.Route || op.Service == model.Matrix)
	return !c.hasRegion && a.Status == 500 && needsRegion
}

// authenticate puts a token into the headers of a request, or the cookie of a session.
func (c *Customers) authenticate(header http.Header, label string) {
	text := c.tokenText(label)
	if strings.HasPrefix(text, cookiePrefix) {
		header.Set("Cookie", text)
		return
	}
	header.Set("Authorization", "Bearer "+text)
}

// tokenText returns the text of a token.
func (c *Customers) tokenText(label string) string {
	if label == model.Operator {
		text, _ := c.world.OperatorToken()
		return text
	}
	return c.Model.Token(label)
}

// secret returns the key of an operation.
func (c *Customers) secret(op model.Operation) model.Secret {
	for _, s := range c.Model.Secrets(op.Account) {
		if s.Label == op.Key {
			return s
		}
	}
	return model.Secret{}
}

// keys returns the keys of a kind that somebody has, the oldest first, including revoked ones.
func (c *Customers) keys(account, kind string) []model.Secret {
	return slices.DeleteFunc(c.Model.Secrets(account), func(s model.Secret) bool { return s.Kind != kind })
}

// knownEverywhere is the time until every instance knows a new key.
const knownEverywhere = 1100 * time.Millisecond

// key returns the key for an act: an active one, and now and then any, revoked or not. If the account has no key, one is issued.
func (c *Customers) key(ctx context.Context, act actDetails) (label string, ok bool) {
	all := c.keys(act.Account, "secret")
	active := slices.DeleteFunc(slices.Clone(all), func(s model.Secret) bool { return !s.IsActive })
	if len(active) == 0 {
		c.issueFirst(ctx, act)
		all = c.keys(act.Account, "secret")
		active = all
	}
	switch {
	case len(all) == 0:
		return "", false
	case act.Pick%9 == 0:
		return all[act.Pick%len(all)].Label, true
	}
	return active[len(active)-1].Label, true
}

// issueFirst issues a key for an account without one, and waits until every instance knows it. Acts at the same time wait for the same key: the
// model could not follow many keys of unknown fate.
func (c *Customers) issueFirst(ctx context.Context, act actDetails) {
	_, _, _ = c.issuing.Do(act.Account, func() (any, error) {
		act.Label = fmt.Sprintf("k%06d", c.issued.Add(1))
		c.issueKey(ctx, act, "secret")
		time.Sleep(knownEverywhere)
		return nil, nil
	})
}

// operation returns the fields that all requests of an act share.
func (act actDetails) operation(account string) model.Operation {
	return model.Operation{Act: act.Label, Instance: act.Instance, Account: account, Token: model.Operator, Patience: act.Patience, SendsOnce: act.SendsOnce}
}

// atOnce does something several times at once, on the instances in turn, and returns when all is done.
func (c *Customers) atOnce(ctx context.Context, act actDetails, do func(i int, act actDetails)) {
	if act.Times > 0 {
		c.key(ctx, act) // a single key for all
	}
	var all sync.WaitGroup
	for i := range max(act.Times, 1) {
		one := act
		one.Instance = (act.Instance + i) % c.world.Instances()
		all.Go(func() { do(i, one) })
	}
	all.Wait()
}

// decode decodes the body of a successful answer.
func decode[T any](a Answer) (value T, ok bool) {
	return value, a.Status/100 == 2 && json.Unmarshal(a.Body, &value) == nil
}
