package simulation

import (
	"math/rand/v2"
	"slices"
	"time"

	"lieudit/cmd/bench/simulation/customers"
	"lieudit/cmd/bench/simulation/faults"
	"lieudit/schemas/plan"
)

// Script is everything that happens in a history, as plain data, so that it can be played again and shortened. It does not determine the order
// in which goroutines run, so two plays may differ.
type Script struct {
	Seed     uint64    `json:"seed"`     // of the region, and of the calls that faults strike; ids and secrets come from the seed of the test
	Begin    time.Time `json:"begin"`    // wall time
	Accounts int       `json:"accounts"` // the number of accounts
	Days     []Day     `json:"days"`

	HasServers bool `json:"servers,omitempty"` // instances reach the logs through package esdb and servers
	HasRegion  bool `json:"region,omitempty"`  // instances have a vintage and a road network; without them each question about them fails

	// UpgradeDay is the number of the day, from 0, on which an operator finishes an upgrade: until then the log has the format before the
	// last. It is 0 if the log has the highest format from the beginning.
	UpgradeDay int   `json:"upgrade_day,omitempty"`
	Shards     int64 `json:"shards,omitempty"` // of usage streams; 0: one

	// ClosesPromptly means that periods of usage are closed while requests in them may still be under way. Then no wall clock is ahead of the
	// log's, except for moments in which one is 40 days ahead.
	ClosesPromptly bool `json:"closes_promptly,omitempty"`
}

// Day is everything that happens within dayLength, how long all is quiet after it, and the wall time at which the next day begins.
type Day struct {
	Acts   []customers.Act `json:"acts"`
	Faults []faults.Fault  `json:"faults"`
	Idle   time.Duration   `json:"idle,omitempty"` // elapsed time
	Until  time.Duration   `json:"until"`          // wall time after this day's beginning
}

// The size of a day.
const (
	dayLength     = 30 * time.Second
	actsPerDay    = 100
	faultsPerDay  = 5
	accountsCount = 20
	longestIdle   = 40 * time.Minute

	serverInterval = 10 // one history in n has servers before its logs
	promptInterval = 2  // one history in n closes periods promptly
	shardInterval  = 4  // one history in n spreads the contracts over several streams of usage
	failInterval   = 3  // one history in n has no region: then many requests are counted, fail and are refunded
)

// Generate draws a script.
func Generate(seed uint64, days int) Script {
	random := rand.New(rand.NewPCG(seed, 0))
	s := Script{Seed: seed, Accounts: accountsCount, Begin: time.Date(2026, time.Month(1+random.IntN(12)), 1+random.IntN(28), 7, 0, 0, 0, time.UTC)}
	s.HasServers, s.HasRegion, s.ClosesPromptly = seed%serverInterval == 0, seed%failInterval != 0, seed%promptInterval != 0
	if seed%shardInterval == 0 {
		s.Shards = 3
	}
	if days > 1 && seed/2%2 == 0 {
		s.UpgradeDay = 1 + random.IntN(days-1)
	}
	at, boundary := s.Begin, time.Time{} // boundary: the end of something in the middle of the drawn day; zero: none
	for number := range days {
		d := Day{Acts: customers.Generate(random, s.Accounts, actsPerDay, instanceCount, dayLength), Until: 24 * time.Hour}
		if random.IntN(eraseInterval) == 0 {
			s.addErasure(random, &d)
		}
		if s.UpgradeDay != 0 && number >= s.UpgradeDay {
			d.Acts = append(d.Acts, customers.Act{At: time.Duration(random.Int64N(int64(dayLength))), Instance: random.IntN(instanceCount), Kind: customers.FinishUpgrade, Seed: random.Uint64()})
			customers.SortActs(d.Acts)
		}
		writes := customers.Writes(d.Acts)
		for range faultsPerDay {
			d.Faults = append(d.Faults, s.newFault(random, writes))
		}
		if !boundary.IsZero() {
			d.Acts = append(d.Acts, customers.GenerateCluster(random, s.endingAt(boundary), instanceCount, dayLength/2)...)
			d.Faults = append(d.Faults, s.newFaultsAtBoundary(random)...)
			customers.SortActs(d.Acts)
		}
		slices.SortStableFunc(d.Faults, func(a, b faults.Fault) int { return int(a.At - b.At) })
		boundary = s.drawNight(random, &d, at)
		at = at.Add(d.Until)
		s.Days = append(s.Days, d)
	}
	return s
}

// eraseInterval n means that on one day in n an account is erased while something fails.
const eraseInterval = 4

// erasureFaults are faults that may come between the steps of an erasure: the events on the log, and the destruction of the key in the vault.
var erasureFaults = []struct {
	part string
	kind faults.Kind
}{
	{faults.CoreLog, faults.AppendRefused}, {faults.CoreLog, faults.AppendRefused}, {faults.CoreLog, faults.AppendUnknownLost},
	{faults.CoreLog, faults.AppendUnknownMade}, {faults.CoreLog, faults.DiesBeforeAppend}, {faults.CoreLog, faults.DiesAfterAppend},
	{faults.Vault, faults.DatabaseAway}, {faults.Vault, faults.DatabaseFull}, {faults.Vault, faults.DatabaseSlow}, {faults.Vault, faults.CommitUnknownLost},
}

// addErasure adds the erasure of an account to a day, and a fault that strikes one of its steps.
func (s Script) addErasure(random *rand.Rand, d *Day) {
	act := customers.Act{At: time.Duration(random.Int64N(int64(dayLength))), Account: random.IntN(s.Accounts), Instance: random.IntN(instanceCount),
		Kind: customers.EraseAccount, Seed: random.Uint64()}
	struck := erasureFaults[random.IntN(len(erasureFaults))]
	f := faults.Fault{Kind: struck.kind, Part: struck.part, Instance: act.Instance, At: act.At, For: time.Second + leastLong*time.Duration(random.IntN(2))}
	if f.Part == faults.CoreLog {
		f.Of, f.Skip = "account", min(random.IntN(4), 1) // an account's closing comes before its erasure
	}
	d.Acts, d.Faults = append(d.Acts, act), append(d.Faults, f)
	customers.SortActs(d.Acts)
}

// drawNight draws the end of a day that begins at a wall time. If the next day spans a boundary, it returns that.
func (s Script) drawNight(random *rand.Rand, d *Day, at time.Time) (boundary time.Time) {
	switch n := random.IntN(60); {
	case n < 1:
		d.Idle = time.Duration(random.Int64N(int64(longestIdle)))
	case n < 9:
		d.Until *= time.Duration(2 + random.IntN(12)) // so that months end, and summer time too
	case n < 21:
		boundary = s.drawBoundary(random, at.Add(24*time.Hour))
		d.Until = boundary.Sub(at) - dayLength/2
	}
	return boundary
}

// drawBoundary draws the next boundary after an instant: half of the times the end of one account's period, otherwise nextBoundary's.
func (s Script) drawBoundary(random *rand.Rand, after time.Time) time.Time {
	account := random.IntN(s.Accounts)
	if random.IntN(2) == 0 {
		return nextBoundary(after, s.Begin)
	}
	return plan.PeriodAt(s.anchorOf(account), after.Add(dayLength)).End()
}

// anchorOf returns the first day of the first period of an account that is opened on the first day, as nearly all are.
func (s Script) anchorOf(account int) plan.Date {
	return plan.DateOf(s.Begin.AddDate(0, 0, -customers.PeriodAge(account)))
}

// endingAt returns the accounts whose periods end at an instant, or all accounts if no period ends then.
func (s Script) endingAt(boundary time.Time) (accounts []int) {
	all := make([]int, s.Accounts)
	for i := range all {
		all[i] = i
		if plan.PeriodAt(s.anchorOf(i), boundary).Start().Equal(boundary) {
			accounts = append(accounts, i)
		}
	}
	if len(accounts) == 0 {
		return all
	}
	return accounts
}

// nextBoundary returns the next instant at which something ends for everybody: a period of the accounts that were opened first, a month, or
// winter or summer time.
func nextBoundary(after, begin time.Time) time.Time {
	day := plan.DateOf(after)
	for {
		day = plan.Date{Year: day.Year, Month: day.Month, Day: day.Day + 1}
		start := day.Start()
		switch _, offset := start.Zone(); {
		case start.Day() == plan.DateOf(begin).Day, start.Day() == 1:
			return start
		default:
			if _, next := start.Add(24 * time.Hour).Zone(); next != offset { // the hour changes at 01:00 UTC
				return start.UTC().Truncate(24 * time.Hour).Add(25 * time.Hour)
			}
		}
	}
}

// slowUsage are the faults that make appends to the usage log slow, or send them more than once.
var slowUsage = []faults.Kind{faults.AppendLate, faults.AppendLate, faults.AppendUnknownMade, faults.AppendUnknownLost, faults.RepeatDropped, faults.LogSilent}

// newFaultsAtBoundary returns faults that make the usage log and all work slow while something ends in the middle of a day, and set the clock
// of one instance apart.
func (s Script) newFaultsAtBoundary(random *rand.Rand) []faults.Fault {
	const lead = 5 * time.Second // before the boundary
	slow := faults.Fault{Kind: slowUsage[random.IntN(len(slowUsage))], Part: faults.UsageLog, Instance: random.IntN(instanceCount+1) - 1,
		At: dayLength/2 - time.Duration(random.Int64N(int64(lead))), For: lead + time.Duration(random.Int64N(int64(lead)))}
	if random.IntN(2) == 0 {
		slow.Rate = 0.1 + 0.8*random.Float64()
	}
	return []faults.Fault{
		slow,
		{Kind: faults.WorkSlow, Part: faults.World, Instance: -1, At: dayLength/2 - lead, For: 2 * lead, Rate: 0.5},
		{Kind: faults.WallClockApart, Part: faults.World, Instance: random.IntN(instanceCount),
			At: time.Duration(random.Int64N(int64(dayLength / 2))), For: dayLength / 2, Jump: s.newJump(random)},
	}
}

// drawJump draws how far a clock jumps, forward or back.
func drawJump(random *rand.Rand) time.Duration {
	return time.Duration(random.Int64N(int64(20*time.Minute))) - 10*time.Minute
}

// newJump draws how far the wall clock of an instance jumps.
func (s Script) newJump(random *rand.Rand) time.Duration {
	jump := drawJump(random)
	if s.ClosesPromptly {
		return -jump.Abs()
	}
	return jump
}

// newFault draws a fault. Faults that strike all instances at once are rarer than others. Most faults strike while somebody writes, since they
// do no harm while nobody asks.
func (s Script) newFault(random *rand.Rand, writes []customers.Act) faults.Fault {
	all := faults.Kinds()
	for {
		k := all[random.IntN(len(all))]
		if rare[k.Kind] && random.IntN(4) > 0 || strikesServers[k.Kind] && !s.HasServers || k.Kind == faults.RegionAway && !s.HasRegion {
			continue
		}
		f := faults.Fault{Kind: k.Kind, Part: k.Parts[random.IntN(len(k.Parts))], Instance: random.IntN(instanceCount+1) - 1,
			At: time.Duration(random.Int64N(int64(dayLength))), For: 500*time.Millisecond + time.Duration(random.Int64N(int64(5*time.Second)))}
		if random.IntN(2) == 0 {
			f.Rate = 0.1 + 0.8*random.Float64()
		}
		f.Of, f.Skip = drawTarget(random, k.Kind)
		if met := slices.DeleteFunc(slices.Clone(writes), func(a customers.Act) bool { return !mayMeet(f, a) }); len(met) > 0 && random.IntN(4) > 0 {
			f.At = max(met[random.IntN(len(met))].At-time.Duration(random.Int64N(int64(f.For))), 0)
		}
		if f.For += longerTimes[k.Kind]; random.IntN(longInterval) == 0 {
			f.For = leastLong + time.Duration(random.Int64N(int64(mostLong-leastLong)))
		}
		f.Choice = random.IntN(1 << 20)
		switch f.Kind {
		case faults.WallClockApart:
			f.Jump = s.newJump(random)
		case faults.DatabaseClockJumped:
			f.Jump = drawJump(random)
		}
		return f
	}
}

// mayMeet reports whether a fault may strike the writes of an act. Large syncs are nearly always staged, so they are for the faults of
// stagings, and for those of the vault that strike each call: the rows are sealed in the middle of a decision.
func mayMeet(f faults.Fault, a customers.Act) bool {
	isForStagings := f.Of == stagings || f.Part == faults.Vault && f.Rate == 0
	return !isForStagings || a.Kind == customers.LargeSync
}

// drawTarget draws the appends or events that a fault strikes, and how many of them pass first, so that each step of a staging is struck.
func drawTarget(random *rand.Rand, kind faults.Kind) (of string, skip int) {
	switch kind {
	case faults.AppendRefused, faults.AppendUnknownMade, faults.AppendUnknownLost, faults.AppendLate, faults.RepeatDropped:
		if random.IntN(2) == 0 {
			return "", 0
		}
		return appendCategories[random.IntN(len(appendCategories))], random.IntN(3)
	case faults.DiesBeforeAppend, faults.DiesAfterAppend:
		return appendCategories[random.IntN(len(appendCategories))], random.IntN(3)
	case faults.TypeUnknown:
		return newTypes[random.IntN(len(newTypes))], 0
	}
	return "", 0
}

// stagings is the category of the streams that hold the rows of a sync until it is committed.
const stagings = "sync"

// appendCategories are categories of streams of both logs, including the stagings of syncs and what commits them.
var appendCategories = []string{stagings, stagings, "locations", "account", "usage"}

// One fault in longInterval lasts longer than appends of unknown fate are retried, which is 15 s in the customer area.
const (
	longInterval = 10
	leastLong    = 16 * time.Second
	mostLong     = 40 * time.Second
)

// longerTimes are the minimum durations of faults that need time: an older program must start and take over leases, and an instance writes
// files on its own disk only now and then.
var longerTimes = map[faults.Kind]time.Duration{faults.TypeUnknown: 10 * time.Second, faults.InstanceDiskFull: 10 * time.Second}

// newTypes are types of events that an older program may lack.
var newTypes = []string{
	"account.plan-changed.v1", "account.secret-key-issued.v1", "account.key-revoked.v1",
	"locations.sites-changed.v1", "locations.sync-committed.v1", "locations.referential-archived.v1",
}

// strikesServers contains the faults of histories with servers.
var strikesServers = map[faults.Kind]bool{faults.ServerSilent: true, faults.ServerRestarts: true, faults.ConnectionsCut: true}

// rare contains the faults that restart everything.
var rare = map[faults.Kind]bool{faults.LogRestored: true, faults.ReadModelsOld: true, faults.ReadModelsLost: true, faults.VaultOld: true}
