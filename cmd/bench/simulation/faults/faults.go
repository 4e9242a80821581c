// Package faults makes the parts of one simulated instance fail, each alone and for a while. A part fails only in ways that eventstore.Store
// and database/sql do not rule out. Kinds lists all faults.
//
//	Fault, plain data ──> Injector.Strike … Mend ──> Log       in front of an eventstore.Store
//	                              Kill ────────────> Database  in front of the connections of database/sql
//	                              Room ────────────> osfile.Disk, that of the files which the instance keeps for itself
//
// Kinds also lists the faults that package simulation strikes, because they concern the world and not one instance's calls: deaths with their
// files, restored logs, replaced databases, jumping clocks.
package faults

import (
	"context"
	"errors"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// Kind is a kind of fault.
type Kind string

// The parts that faults strike.
const (
	CoreLog     = "core log"
	UsageLog    = "usage log"
	ReadModels  = "read models"
	Vault       = "vault"
	CoreServer  = "core log's server"
	UsageServer = "usage log's server"
	World       = "world" // the instance as a whole, its files and clocks, or the logs behind all instances
)

// The kinds of faults, see Kinds.
const (
	AppendRefused       Kind = "append refused"
	AppendUnknownMade   Kind = "append made and unknown"
	AppendUnknownLost   Kind = "append lost and unknown"
	AppendLate          Kind = "append late"
	RepeatDropped       Kind = "repeated append dropped"
	IDsForgotten        Kind = "ids forgotten between two sendings"
	ReadCut             Kind = "read cut short"
	ReadStalled         Kind = "read stalled"
	SubscriptionBehind  Kind = "subscription behind"
	CaughtUpRepeated    Kind = "caught up repeated"
	SubscriptionEnds    Kind = "subscription ends"
	DiesBeforeAppend    Kind = "instance dies before an append"
	DiesAfterAppend     Kind = "instance dies after an append"
	TypeUnknown         Kind = "type of events unknown"
	EventUnusable       Kind = "event unusable"
	LogSilent           Kind = "log silent"
	LogUnavailable      Kind = "log unavailable"
	ServerSilent        Kind = "server silent"
	ServerRestarts      Kind = "server restarts"
	ConnectionsCut      Kind = "connections cut"
	DatabaseAway        Kind = "database away"
	DatabaseSlow        Kind = "database slow"
	DatabaseFull        Kind = "database full"
	CommitUnknownMade   Kind = "commit made and unknown"
	CommitUnknownLost   Kind = "commit lost and unknown"
	DatabaseLocked      Kind = "database locked"
	InstanceDies        Kind = "instance dies"
	InstanceStops       Kind = "instance ends gracefully"
	InstancePauses      Kind = "instance pauses"
	InstanceOldFiles    Kind = "instance starts with yesterday's files"
	InstanceNoFiles     Kind = "instance starts without files"
	InstanceDiskFull    Kind = "instance's own disk full"
	WorkSlow            Kind = "work slow"
	RegionAway          Kind = "vintage and road network away"
	WallClockApart      Kind = "wall clock apart"
	WallClockFarAhead   Kind = "wall clock 40 days ahead"
	LogRestored         Kind = "log restored to an older copy"
	ReadModelsOld       Kind = "read models rolled back"
	ReadModelsLost      Kind = "read models lost"
	VaultOld            Kind = "vault replaced by an older one"
	DatabaseClockJumped Kind = "clock of the databases jumped"
)

// Description is a row of Kinds.
type Description struct {
	Kind  Kind
	Parts []string // the parts that it may strike
	Text  string   // what happens, and why it is allowed
}

// Kinds lists every kind of fault. Those of World and of servers are struck by package simulation, the others by the wrappers of
// this package.
func Kinds() []Description {
	logs, servers, databases := []string{CoreLog, UsageLog}, []string{CoreServer, UsageServer}, []string{ReadModels, Vault}
	return []Description{
		{AppendRefused, logs, "an append is ErrUnavailable, and nothing was added"},
		{AppendUnknownMade, logs, "an append is added and ErrUnknown, as when its answer is lost"},
		{AppendUnknownLost, logs, "an append is not added and ErrUnknown, as when its request is lost"},
		{AppendLate, logs, "an append takes up to three seconds, and is added all the same where its caller gave it up meanwhile"},
		{RepeatDropped, logs, "an append sent a second time is not answered, though the first sending was added"},
		{IDsForgotten, logs, "an append with Any is added and ErrUnknown, and the log forgets its ids, as a new leader does"},
		{ReadCut, logs, "a read ends with an error after some events"},
		{ReadStalled, logs, "a read begins only when the fault is over, or its context"},
		{SubscriptionBehind, logs, "a subscription yields each event some time late"},
		{CaughtUpRepeated, logs, "a subscription yields CaughtUp again, with the same checkpoint"},
		{SubscriptionEnds, logs, "a subscription ends with a CorruptError, as where a disk read wrong bytes once"},
		{DiesBeforeAppend, logs, "an instance dies when it sends an append, before that is added"},
		{DiesAfterAppend, logs, "an instance dies when an append was added, before it knows"},
		{TypeUnknown, []string{CoreLog}, "an instance of an older program runs for a while: its catalog lacks a type of events"},
		{EventUnusable, []string{World}, "another program appends to an account's stream what nobody can decode; an operator repairs the account after a while"},
		{LogSilent, logs, "nothing is answered until the fault is over; Health is a StallError"},
		{LogUnavailable, logs, "appends, reads and Health fail at once; subscriptions wait"},
		{ServerSilent, servers, "a server keeps its connections and answers nothing on them; what it was asked is done all the same"},
		{ServerRestarts, servers, "a server ends, forgets the ids of what was appended with Any, and starts again"},
		{ConnectionsCut, []string{World}, "the connections of an instance to the servers are cut, with what is on its way"},
		{DatabaseAway, databases, "no statement reaches the database and no connection is made"},
		{DatabaseSlow, databases, "each statement takes up to two seconds more"},
		{DatabaseFull, databases, "statements that write fail; reads work"},
		{CommitUnknownMade, databases, "a transaction is committed and the commit fails"},
		{CommitUnknownLost, databases, "a transaction is rolled back and the commit fails"},
		{DatabaseLocked, []string{World}, "another program holds the write lock of the read models' files"},
		{InstanceDies, []string{World}, "from one instant on no call takes effect; the next start finds the files as they stood"},
		{InstanceStops, []string{World}, "an instance ends gracefully and is started again"},
		{InstancePauses, []string{World}, "every call of an instance waits for seconds"},
		{InstanceOldFiles, []string{World}, "an instance dies and starts with its own folder as it stood a day before"},
		{InstanceNoFiles, []string{World}, "an instance dies and starts with an empty folder of its own"},
		{InstanceDiskFull, []string{World}, "what an instance writes into its own folder finds no room, mostly in the middle of a file"},
		{WorkSlow, []string{World}, "a question about roads takes up to three seconds, and so does each part of a body, sent or read, of a client that is slow"},
		{RegionAway, []string{World}, "an instance serves neither its vintage nor its road network, as where a file proves to be damaged"},
		{WallClockApart, []string{World}, "an instance's wall clock is set minutes forward or back"},
		{WallClockFarAhead, []string{World}, "the wall clock of an instance, of the logs' machine, or of all machines is 40 days ahead for a moment"},
		{LogRestored, []string{World}, "both logs are as they were at a quiet moment, with all instances ended meanwhile, or under running ones"},
		{ReadModelsOld, []string{World}, "all instances end and find the read models as they were a day before"},
		{ReadModelsLost, []string{World}, "all instances end and find no read models"},
		{VaultOld, []string{World}, "all instances end and find the vault as it was a day before, or before there was any account; it is put right after a while"},
		{DatabaseClockJumped, []string{World}, "the clock of the databases is set forward or back"},
	}
}

// Fault is one fault of a script, as plain data.
type Fault struct {
	Kind     Kind          `json:"kind"`
	Part     string        `json:"part"`
	Instance int           `json:"instance"`       // -1: all
	At       time.Duration `json:"at"`             // after the beginning of its day
	For      time.Duration `json:"for"`            // how long it lasts
	Rate     float64       `json:"rate,omitempty"` // the share of calls struck; 0: all
	Jump     time.Duration `json:"jump,omitempty"` // of a clock
	Choice   int           `json:"choice"`         // decides details: which account, which copy, under running instances or not
	Of       string        `json:"of,omitempty"`   // only appends to streams of this category; of TypeUnknown, the type
	Skip     int           `json:"skip,omitempty"` // how many calls pass before the first is struck
}

// Injector decides which calls of one run of an instance are struck. It is safe for concurrent use.
type Injector struct {
	OnDeath func() // called in a goroutine of its own after a fault has killed the instance; may be nil

	// OnStrike is called when a fault strikes a call. It must not wait, nor call the Injector. It may be nil.
	OnStrike func(Fault)

	// LongestTurn is the longest wait of a call on a log or a database before it begins, so that calls of several instances come in a different
	// order each time: half of them wait, the others let other goroutines run. 0: no call waits. Set it before the first call.
	LongestTurn time.Duration

	hadNoRoom atomic.Bool

	mu     sync.Mutex
	random *rand.Rand
	active map[target][]*activeFault
	dead   chan struct{}
}

// target is what a call concerns.
type target struct {
	kind Kind
	part string
}

// activeFault is a fault that strikes now.
type activeFault struct {
	Fault
	since time.Time
	calls int           // calls so far that match it, see Skip
	over  chan struct{} // closed when it is over
}

// NewInjector returns an Injector that strikes nothing yet. The seed decides which calls a fault with a Rate strikes.
func NewInjector(seed uint64) *Injector {
	return &Injector{random: rand.New(rand.NewPCG(seed, 1)), active: map[target][]*activeFault{}, dead: make(chan struct{})}
}

// Strike begins a fault, and returns the function that ends it.
func (i *Injector) Strike(f Fault) (mend func()) {
	i.mu.Lock()
	defer i.mu.Unlock()
	a, at := &activeFault{Fault: f, since: time.Now(), over: make(chan struct{})}, target{f.Kind, f.Part}
	i.active[at] = append(i.active[at], a)
	return sync.OnceFunc(func() {
		i.mu.Lock()
		defer i.mu.Unlock()
		close(a.over)
		for n, other := range i.active[at] {
			if other == a {
				i.active[at] = append(i.active[at][:n:n], i.active[at][n+1:]...)
				return
			}
		}
	})
}

// Kill ends all effects of the instance: from now on none of its calls is made.
func (i *Injector) Kill() {
	i.mu.Lock()
	defer i.mu.Unlock()
	select {
	case <-i.dead:
	default:
		close(i.dead)
	}
}

// killAt kills the instance if a fault of a kind strikes its append to a stream, and reports whether it did.
func (i *Injector) killAt(kind Kind, part, stream string) bool {
	if i.findOf(kind, part, categoryOf(stream)) == nil {
		return false
	}
	i.Kill()
	if i.OnDeath != nil {
		go i.OnDeath()
	}
	return true
}

// errDead is the error of the calls of a dead instance. Nobody sees it.
var errDead = errors.New("the instance is dead")

// isDead reports whether Kill was called.
func (i *Injector) isDead() bool {
	select {
	case <-i.dead:
		return true
	default:
		return false
	}
}

// find returns a fault of a kind that strikes a call now, nil for none.
func (i *Injector) find(kind Kind, part string) *activeFault { return i.findOf(kind, part, "") }

// findOf is find for calls on streams of a category, or on events of a type.
func (i *Injector) findOf(kind Kind, part, of string) *activeFault {
	i.mu.Lock()
	defer i.mu.Unlock()
	for _, a := range i.active[target{kind, part}] {
		if a.Of != "" && a.Of != of || a.Rate != 0 && i.random.Float64() >= a.Rate {
			continue
		}
		if a.calls++; a.calls > a.Skip {
			if i.OnStrike != nil {
				i.OnStrike(a.Fault)
			}
			return a
		}
	}
	return nil
}

// categoryOf returns the category of a stream.
func categoryOf(stream string) string {
	category, _, _ := strings.Cut(stream, "-")
	return category
}

// findType returns a fault that hides a type of events, nil for none.
func (i *Injector) findType(part string) *activeFault {
	i.mu.Lock()
	defer i.mu.Unlock()
	for _, a := range i.active[target{TypeUnknown, part}] {
		return a
	}
	return nil
}

// strikes reports whether a fault of a kind strikes a call now.
func (i *Injector) strikes(kind Kind, part string) bool { return i.find(kind, part) != nil }

// randomDuration returns a duration between zero and longest.
func (i *Injector) randomDuration(longest time.Duration) time.Duration {
	i.mu.Lock()
	defer i.mu.Unlock()
	return time.Duration(i.random.Int64N(int64(longest)))
}

// awaitEnd waits until a fault is over. It returns an error if the context ends or the instance dies first.
func (i *Injector) awaitEnd(ctx context.Context, a *activeFault) error {
	select {
	case <-a.over:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-i.dead:
		return i.awaitContext(ctx)
	}
}

// Room returns how many of the next bytes fit on the instance's own disk, see osfile.Disk.
func (i *Injector) Room(bytes int) (int, error) {
	if !i.strikes(InstanceDiskFull, World) {
		return bytes, nil
	}
	i.hadNoRoom.Store(true)
	return int(i.randomDuration(time.Duration(bytes + 1))), errFull
}

// HadNoRoom reports whether the instance's own disk was ever full.
func (i *Injector) HadNoRoom() bool { return i.hadNoRoom.Load() }

// awaitPause waits while the instance is paused.
func (i *Injector) awaitPause(ctx context.Context) error {
	for a := i.find(InstancePauses, World); a != nil; a = i.find(InstancePauses, World) {
		if err := i.awaitEnd(ctx, a); err != nil {
			return err
		}
	}
	if i.isDead() {
		return i.awaitContext(ctx)
	}
	return nil
}

// awaitTurn starts each call on a log or a database, see LongestTurn.
func (i *Injector) awaitTurn(ctx context.Context) error {
	if i.LongestTurn == 0 {
		return nil
	}
	if d := i.randomDuration(2*i.LongestTurn) - i.LongestTurn; d > 0 {
		return i.sleep(ctx, d)
	}
	runtime.Gosched()
	return nil
}

const (
	usualWork = 100 * time.Millisecond // the longest that a question about roads takes
	slowWork  = 3 * time.Second        // the same, and a part of a body, while WorkSlow strikes
)

// Work waits for the elapsed time of a question about roads.
func (i *Injector) Work(ctx context.Context) error {
	if i.strikes(WorkSlow, World) {
		return i.sleep(ctx, i.randomDuration(slowWork))
	}
	return i.sleep(ctx, i.randomDuration(usualWork))
}

// Transfer waits for the elapsed time that a part of a body is under way: none, unless WorkSlow strikes.
func (i *Injector) Transfer(ctx context.Context) error {
	if !i.strikes(WorkSlow, World) {
		return nil
	}
	return i.sleep(ctx, i.randomDuration(slowWork))
}

// awaitContext ends the calls of a dead instance: with their context, or at once if that never ends.
func (i *Injector) awaitContext(ctx context.Context) error {
	if ctx.Done() == nil {
		return errDead
	}
	<-ctx.Done()
	return ctx.Err()
}

// sleep waits for a duration, or until the context ends or the instance dies.
func (i *Injector) sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-i.dead:
		return i.awaitContext(ctx)
	}
}
