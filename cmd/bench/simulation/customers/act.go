package customers

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"
)

// Act is one action of somebody on a day, as plain data. Its Seed decides the details.
type Act struct {
	At       time.Duration `json:"at"` // after the beginning of the day
	Account  int           `json:"account"`
	Instance int           `json:"instance"`
	Kind     string        `json:"kind"`
	Seed     uint64        `json:"seed"`
}

// kind is a row of the table of acts.
type kind struct {
	name   string
	weight int // how often, relative to the others
	play   func(*Customers, context.Context, actDetails)
	size   int // the most that actDetails.Size may be
	times  int // the most that actDetails.Times may be
	writes bool
}

// kinds returns the table of acts. The first act of an account opens it.
func kinds() []kind {
	return slices.Concat(questionKinds(), placesKinds(), accountKinds(), officeKinds(), sessionKinds())
}

// Generate draws a day's acts of some accounts, sorted by time.
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
	SortActs(drawn)
	return drawn
}

// A cluster is a set of acts around an instant at which something ends, when requests are counted on either side of it.
const (
	clusterActs = 30
	clusterTime = 4 * time.Second // before and after the instant
)

// clusterKinds are the acts of a cluster: those that count several requests before their work, and refund some, and writes.
var clusterKinds = []string{"matrix", "matrix", "file", "file", "reverse file", "optimize", "nearest", "burst", "me", "put site", "sync", LargeSync}

// GenerateCluster draws the acts of some accounts around an instant of a day, sorted by time.
func GenerateCluster(random *rand.Rand, accounts []int, instances int, at time.Duration) []Act {
	drawn := make([]Act, clusterActs)
	for i := range drawn {
		drawn[i] = Act{At: at - clusterTime + time.Duration(random.Int64N(int64(2*clusterTime))), Account: accounts[random.IntN(len(accounts))],
			Instance: random.IntN(instances), Kind: clusterKinds[random.IntN(len(clusterKinds))], Seed: random.Uint64()}
	}
	SortActs(drawn)
	return drawn
}

// SortActs sorts acts by time.
func SortActs(acts []Act) {
	slices.SortStableFunc(acts, func(a, b Act) int { return int(a.At - b.At) })
}

// Writes returns the acts that change what others see.
func Writes(acts []Act) []Act {
	writing := map[string]bool{}
	for _, k := range kinds() {
		writing[k.name] = k.writes
	}
	return slices.DeleteFunc(slices.Clone(acts), func(a Act) bool { return !writing[a.Kind] })
}

// actDetails is an act in detail.
type actDetails struct {
	Account, Other string // the act's account, and a stranger's
	Instance       int
	Label          string // names the results of the act; no other act has it
	Code           string // of a referential; "": by Pick
	Plan           string
	Quota          int64
	Pick           int    // which key, referential, site
	Size           int    // how many sites, rows, cells
	Times          int    // how often at once; 0: once
	By             string // label of the token to use; "": an operator's

	Patience  time.Duration // of clients with a key; 0: the usual
	SendsOnce bool          // the client does not retry
}

// impatience n means that in one act of n the client gives up soon, most often while the service waits for a slow log.
const impatience = 5

// drawDetails draws the details of an act.
func (c *Customers) drawDetails(act Act, k kind) actDetails {
	random := rand.New(rand.NewPCG(act.Seed, 7))
	d := actDetails{Account: accountID(act.Account), Other: accountID(random.IntN(c.accounts)), Instance: act.Instance,
		Label: fmt.Sprintf("n%016x", act.Seed), Plan: []string{"STARTER", "GROWTH", "BUSINESS"}[random.IntN(3)],
		Quota: 20 + random.Int64N(400), Pick: random.IntN(1 << 20)}
	if k.size > 0 {
		d.Size = 1 + random.IntN(k.size)
	}
	if k.times > 1 {
		d.Times = 2 + random.IntN(k.times-1)
	}
	if random.IntN(impatience) == 0 {
		d.Patience = time.Duration(random.Int64N(int64(2 * time.Second)))
	}
	d.SendsOnce = random.IntN(2) == 0 // a retry heals what a failure left half done
	return d
}

// Play plays the acts of a day, each at its time, whatever else is under way. It returns when all are over.
func (c *Customers) Play(ctx context.Context, acts []Act) {
	begun := time.Now()
	var playing sync.WaitGroup
	for _, act := range acts {
		playing.Go(func() {
			time.Sleep(act.At - time.Since(begun))
			c.do(ctx, act)
		})
	}
	playing.Wait()
}

// do plays one act. If its account is not open, it opens the account first, which only one act at a time does.
func (c *Customers) do(ctx context.Context, act Act) {
	all := kinds()
	i := slices.IndexFunc(all, func(k kind) bool { return k.name == act.Kind })
	if i < 0 {
		return
	}
	d := c.drawDetails(act, all[i])
	if !c.openFirst(ctx, act.Account, d) {
		return
	}
	if slices.ContainsFunc(placesKinds(), func(k kind) bool { return k.name == act.Kind }) {
		d.Code = c.pickReferential(ctx, d)
	}
	all[i].play(c, ctx, d)
}

// openFirst opens the act's account if it is not open, after its agency. It reports whether the account is open now.
func (c *Customers) openFirst(ctx context.Context, number int, d actDetails) bool {
	c.opening[number] <- struct{}{}
	defer func() { <-c.opening[number] }()
	account := termsOf(number)
	if agency := account.agency; agency >= 0 {
		of := d
		of.Account = accountID(agency)
		if !c.openFirst(ctx, agency, of) {
			return false
		}
	}
	if !c.Model.IsKnown(d.Account) {
		c.open(ctx, d, account)
	}
	if account.isAgency && !c.Model.IsAgency(d.Account) {
		c.becomeAgency(ctx, d)
	}
	return c.Model.IsKnown(d.Account)
}

// terms are the terms on which an account is opened.
type terms struct {
	plan     string
	quota    int64 // 0: the plan's
	agency   int   // number of its agency, -1 for none
	isAgency bool
	age      int // of its first period when it is opened, in days
}

// agencyCount n makes the first n accounts agencies.
const agencyCount = 2

// termsOf returns the terms of the account with a number. Agencies and half of the others have a cap that is reached now and then.
func termsOf(number int) terms {
	switch {
	case number < agencyCount:
		return terms{"GROWTH", 400, -1, true, number * 9}
	case number%4 == 3:
		return terms{"GROWTH", 100, number / 4 % agencyCount, false, 0}
	case number%4 == 0:
		return terms{"STARTER", 60, -1, false, number}
	}
	return terms{[]string{"DISCOVERY", "STARTER", "GROWTH", "BUSINESS", "STARTER"}[number/2%5], 0, -1, false, number}
}

// PeriodAge returns how old, in days, the first period of an account is when the account is opened: its own, or its agency's.
func PeriodAge(account int) int {
	t := termsOf(account)
	if t.agency >= 0 {
		t = termsOf(t.agency)
	}
	return t.age
}

// accountID returns the id of the account with a number.
func accountID(number int) string { return fmt.Sprintf("compte-%02d", number+1) }
