// Package model decides which answers the service may give. It is written from SPEC.md and DECISIONS.md alone, never from the code that it
// checks, and is short enough to read in one sitting. Rules lists what is checked. Every bench that compares answers with what was acknowledged
// before uses it: the simulation, the chaos test, the upgrade test.
//
//	Operation ──> Model.Begin ──> Call … Model.End <── Answer
//	                                       │
//	     access   may this key do that now?│ 401, 403, plans, a second of grace      account: what operators and customers decided
//	     usage    does it count, does it   │ fit under the caps? 429                 places: referentials and sites
//	     orders   does some order of the commands explain the answer? ──────────────> the two above, as sets of possible states
//
// Accounts and places are each a state that commands change one after another, in the order of the log, which the model does not know: the
// internal type orders keeps every state that is still possible. Usage is counts: requests that were surely counted, and requests that may have
// been. At a quiet moment the service shows its state, which resolves all doubts (Settle…) or is a violation.
package model

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"
)

// Answer is what a client gets. If Status is 0 the client got no complete answer, and if IsSent too it is unknown whether the request had an
// effect.
type Answer struct {
	Status int
	Header http.Header
	Body   []byte
	IsSent bool // the request reached an instance
}

// Operation is a request, as far as the rules are concerned.
type Operation struct {
	Act      string // the act that makes it
	Text     string // method and path
	Instance int
	Account  string // the account that it concerns; "" if none
	Endpoint string // method and path with variables, as usage names it

	// With an API key.
	Key     string // its label
	Service Service
	Origin  string // the Origin header, "" for none
	Weight  int64  // the number of requests that it counts as

	Patience  time.Duration // how long its client waits for an answer; 0: the usual time
	SendsOnce bool          // its client does not retry

	// Question identifies a question that always has the same answer; "": not such a question.
	Question string

	// With a token of the customer area.
	Token string // its label

	OnAccount AccountCommand // nil: not such a command
	OnPlaces  PlacesCommand  // nil: not such a command
	OnUsage   *BilledLine    // a correction that adds its requests to what was billed; nil: none
}

// Call is an operation under way.
type Call struct {
	Operation
	began     time.Time
	walls     []time.Time // of the instance: at the beginning, before and after each jump, and at the end
	onAccount *step[account]
	onPlaces  *step[places]
}

// Model is safe for concurrent use.
type Model struct {
	// PeriodGrace is how long after its end a period is closed, by the clock of any instance. Set it before the first operation.
	PeriodGrace time.Duration
	// SoleWriters means that each site is written by a single client, one request at a time, and that this client alone repeats a write that
	// failed or whose instance died. So an answer shows the site as the client wrote it, and a write of unknown fate that is still on its way
	// to the log conflicts with the next acknowledged one. Set it before the first operation.
	SoleWriters bool
	// RefundsInOrder means that an instance refunds the requests that failed before it counts a later request of the account, as it
	// does unless its usage log is unavailable for long. Set it before the first operation.
	RefundsInOrder bool

	mu       sync.Mutex
	accounts map[string]*customer
	tokens   map[string]*areaToken // by label
	book     book
	billed   []BilledLine // at the last quiet moment
	underWay map[*Call]bool
	answers  map[string]string     // by question
	isFound  map[shownAddress]bool // addresses of sites without a position of their own
	walls    map[int]readings      // of each instance's wall clock
	tell     func(rule Rule, format string, args ...any)
}

// customer is what the model knows of one account.
type customer struct {
	account *orders[account]
	places  *orders[places]
	ids     map[siteID]string // of sites, which never change
	related map[string]bool   // accounts that it may know of: agencies that it ever asked to join, or sub-clients

	isUnreadable bool     // see Restore
	secrets      []Secret // of keys, the oldest first
}

// New returns a model of a service without accounts. It reports each violation to tell.
func New(tell func(rule Rule, format string, args ...any)) *Model {
	m := &Model{accounts: map[string]*customer{}, tokens: map[string]*areaToken{}, underWay: map[*Call]bool{},
		answers: map[string]string{}, isFound: map[shownAddress]bool{}, walls: map[int]readings{}, book: book{}, tell: tell}
	m.tokens[Operator] = &areaToken{role: "operator"}
	return m
}

// report reports a violation by an act; "" is a quiet moment.
func (m *Model) report(rule Rule, act, format string, args ...any) {
	m.tell(rule, act+" "+format, args...)
}

// customer returns the record of an account, which it creates if there is none.
func (m *Model) customer(id string) *customer {
	c := m.accounts[id]
	if c == nil {
		c = &customer{account: newOrders(account{}, true), places: newOrders(places{}, false), ids: map[siteID]string{},
			related: map[string]bool{}}
		c.places.lostConflict = m.SoleWriters
		m.accounts[id] = c
	}
	return c
}

// Begin records that a request is about to be sent. wall is its instance's wall clock.
func (m *Model) Begin(op Operation, wall time.Time) *Call {
	m.mu.Lock()
	defer m.mu.Unlock()
	c := &Call{Operation: op, began: time.Now()}
	m.noteWall(c, wall)
	m.underWay[c] = true
	if op.Account == "" {
		return c
	}
	of := m.customer(op.Account)
	if op.OnAccount != nil {
		m.relate(op)
		c.onAccount = of.account.begin(op.OnAccount, func(a account) (all []outcome[account]) {
			for _, wall := range c.walls {
				all = append(all, op.OnAccount.apply(a, wall)...)
			}
			return all
		})
	}
	if op.OnPlaces != nil {
		c.onPlaces = of.places.begin(op.OnPlaces, func(p places) (all []outcome[places]) {
			for _, l := range m.limitsOf(c) {
				all = append(all, op.OnPlaces.apply(p, l)...)
			}
			return all
		})
	}
	return c
}

// End records the answer to a request, and checks it.
func (m *Model) End(c *Call, a Answer, wall time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.underWay, c)
	m.noteWall(c, wall)
	isRefused := !a.IsSent
	if a.Status != 0 {
		m.checkForeign(c, a)
		if c.Key != "" {
			isRefused = m.checkKey(c, a)
		} else {
			isRefused = m.checkToken(c, a)
		}
	}
	if c.Key != "" {
		m.count(c, a)
	}
	if c.Question != "" && counts(a.Status) {
		m.checkQuestion(c, a)
	}
	if c.OnUsage != nil && !isRefused {
		m.adjust(*c.OnUsage, a)
	}
	if c.onAccount != nil {
		settleStep(m, c, m.customer(c.Account).account, c.onAccount, a, isRefused, func() string { return summarizeAccount(c.OnAccount, a) }, showsAccount)
		m.learnKey(c, a)
	}
	if c.onPlaces != nil {
		settleStep(m, c, m.customer(c.Account).places, c.onPlaces, a, isRefused, func() string { return summarizePlaces(c.OnPlaces, a) }, m.showsSiteOf(c.Account))
		m.checkSite(c, a)
	}
}

// checkQuestion checks that a question is answered as it was before.
func (m *Model) checkQuestion(c *Call, a Answer) {
	answer := fmt.Sprint(a.Status, " ", string(a.Body))
	switch before, ok := m.answers[c.Question]; {
	case !ok:
		m.answers[c.Question] = answer
	case before != answer:
		m.report(OneAnswer, c.Act, "%s: %s, and before %s", c.Text, answer, before)
	}
}

// noteWall notes the wall clock of a call's instance.
func (m *Model) noteWall(c *Call, wall time.Time) {
	c.walls = append(c.walls, wall)
	m.noteReading(c.Instance, wall)
}

func (m *Model) noteReading(instance int, wall time.Time) {
	m.walls[instance] = m.walls[instance].with(wall)
}

// readings are the latest reading of a wall clock on each day, in order. The last one alone does not say how far the clock has come: it may
// have been far ahead for a moment, long ago.
type readings []time.Time

// with returns the readings and one more. It may change r.
func (r readings) with(wall time.Time) readings {
	day := Day(wall)
	at, isKnown := slices.BinarySearchFunc(r, day, func(read time.Time, day string) int { return strings.Compare(Day(read), day) })
	switch {
	case !isKnown:
		return slices.Insert(r, at, wall)
	case wall.After(r[at]):
		r[at] = wall
	}
	return r
}

// latest returns the latest reading, or the zero time if there is none.
func (r readings) latest() time.Time {
	if len(r) == 0 {
		return time.Time{}
	}
	return r[len(r)-1]
}

// ClockJumps records what the wall clock of an instance reads just before or just after a jump. Without it a clock that jumps there and back
// during a request would be seen neither at its beginning nor at its end.
func (m *Model) ClockJumps(instance int, wall time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.noteReading(instance, wall)
	for c := range m.underWay {
		if c.Instance == instance {
			c.walls = append(c.walls, wall)
		}
	}
}

// settleStep reports the outcome of a command to the orders that it changed.
func settleStep[S state](m *Model, c *Call, o *orders[S], s *step[S], a Answer, isRefused bool, summarize func() string,
	matches func(now S, due, answer string) (is, mayBeLater bool),
) {
	switch {
	case isRefused:
		if !o.refused(s) {
			m.report(OneOrder, c.Act, "%s: %s, and others were answered as if it took effect", c.Text, short(a))
		}
	case a.Status == 0 || a.Status >= 500:
		o.lost(s)
	default:
		answer := summarize()
		if right, ok := o.answered(s, answer, matches); !ok {
			rule := OneOrder
			if sync, isSync := c.OnPlaces.(SyncSites); isSync && sync.IdempotencyKey != "" {
				rule = SameKeySameAnswer
			}
			m.report(rule, c.Act, "%s: got %s, want one of %q: %s", c.Text, answer, right, short(a))
		}
	}
}

// short returns an answer for people to read.
func short(a Answer) string {
	body := string(a.Body)
	if len(body) > 300 {
		body = body[:300] + "…"
	}
	return fmt.Sprint(a.Status, " ", body)
}

// showsAccount reports whether an answer is the due one, or shows the account as other commands have changed it since.
func showsAccount(now account, due, answer string) (is, mayBeLater bool) {
	isSuccess := strings.HasPrefix(due, "20") && strings.HasPrefix(answer, due[:4])
	return due == answer || isSuccess && answer == due[:4]+strings.TrimPrefix(now.show(0)[0].answer, "0 "), isSuccess
}

// showsSiteOf is showsSite for the sites of an account. If the account may be erased by now, an answer without the name is right too: the
// instance can read it no more, unless it still has the data key in memory.
func (m *Model) showsSiteOf(account string) func(now places, due, answer string) (is, mayBeLater bool) {
	return func(now places, due, answer string) (is, mayBeLater bool) {
		is, mayBeLater = m.showsSite(now, due, answer)
		if !is && m.mayBeErased(account) {
			is, _ = m.showsSite(now, withoutName(due), answer)
		}
		return is, mayBeLater
	}
}

// withoutName returns the short form of an answer as it is once the name in it, which comes last, cannot be read.
func withoutName(answer string) string {
	if begin := strings.LastIndex(answer, ` "`); begin >= 0 && strings.HasPrefix(answer, "20") {
		return answer[:begin] + ` ""`
	}
	return answer
}

// mayBeErased reports whether an account may be erased by now.
func (m *Model) mayBeErased(id string) bool {
	of := m.customer(id).account
	return slices.ContainsFunc(of.possible, func(b branch[account]) bool { return b.state.isErased }) ||
		slices.ContainsFunc(of.pending, func(s *step[account]) bool { return s.command == AccountCommand(EraseAccount{}) })
}

// showsSite is the same for places. A later version of the due site is right too.
func (m *Model) showsSite(_ places, due, answer string) (is, mayBeLater bool) {
	if m.SoleWriters {
		return due == answer, false
	}
	var status, shown struct {
		code, version int
		externalID    string
	}
	_, err := fmt.Sscanf(due, "%d %s v%d", &status.code, &status.externalID, &status.version)
	_, err2 := fmt.Sscanf(answer, "%d %s v%d", &shown.code, &shown.externalID, &shown.version)
	isLater := err == nil && err2 == nil && status.code == shown.code && status.externalID == shown.externalID && shown.version > status.version
	return due == answer || isLater, false
}

// Snapshot is the knowledge of a model at a quiet moment.
type Snapshot struct {
	accounts map[string]*customer
	tokens   map[string]*areaToken
	book     book
	billed   []BilledLine
}

// Snapshot copies what the model knows.
func (m *Model) Snapshot() Snapshot {
	m.mu.Lock()
	defer m.mu.Unlock()
	return Snapshot{m.accounts, m.tokens, m.book, m.billed}.clone()
}

// Restore makes a snapshot the truth, as after the logs were restored. Secrets that were learned since are still tried. Data that was erased
// since stays unreadable, although the log no longer contains the reason (DESIGN.md, "What operators must be able to rely on").
func (m *Model) Restore(s Snapshot) {
	m.mu.Lock()
	defer m.mu.Unlock()
	old := m.accounts
	s = s.clone()
	m.accounts, m.tokens, m.book, m.billed = s.accounts, s.tokens, s.book, s.billed
	for id, was := range old {
		of := m.customer(id)
		of.secrets = was.secrets
		of.isUnreadable = was.isUnreadable || was.account.possible[0].state.isErased && !of.account.possible[0].state.isErased
	}
}

// HasErasedSince reports whether an account may have been erased since a snapshot.
func (m *Model) HasErasedSince(s Snapshot) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	isErased := func(of *customer) bool {
		return of != nil && slices.ContainsFunc(of.account.possible, func(b branch[account]) bool { return b.state.isErased })
	}
	for id, of := range m.accounts {
		if isErased(of) && !isErased(s.accounts[id]) {
			return true
		}
	}
	return false
}

// IsUnreadable reports whether an account's data was erased, and its log then restored to an older copy.
func (m *Model) IsUnreadable(id string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return id != "" && m.customer(id).isUnreadable
}

func (s Snapshot) clone() Snapshot {
	c := Snapshot{map[string]*customer{}, map[string]*areaToken{}, book{}, s.billed}
	for id, of := range s.accounts {
		copied := *of
		copied.account, copied.places = of.account.clone(), of.places.clone()
		copied.ids, copied.secrets, copied.related = maps.Clone(of.ids), slices.Clone(of.secrets), maps.Clone(of.related)
		c.accounts[id] = &copied
	}
	for label, t := range s.tokens {
		copied := *t
		c.tokens[label] = &copied
	}
	for _, lines := range s.book {
		for l, n := range lines {
			*c.book.line(l) = count{n.sure, n.maybe, maps.Clone(n.failed)}
		}
	}
	return c
}
