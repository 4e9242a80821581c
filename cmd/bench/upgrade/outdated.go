package upgrade

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"lieudit/cmd/bench/harness"
	"lieudit/cmd/bench/model"
	"lieudit/schemas/body"
	"lieudit/schemas/event"
)

// This file lets instances of the old program run on after the upgrade is finished. upgrade finish asks the registry in Postgres which
// instances run, so it does not see one that has not renewed its lease for a while: because it lost Postgres, and nothing else, or
// because it was frozen. Such an instance notices the log's format when it looks at it the next time, and ends. Until then it serves:
//
//	finishWithOutdated ──> startOutdated ──> contracts before the upgrade ──> leave ──> finish
//	                  └──> useOutdated ──> contracts after it ──> wake ──> ask until it ends ──> spend
//	                  └──> checkRefusesStart, pruneReadModels
//
// Periods that were open before the upgrade are counted in streams that the old program knows: it may serve them, exactly, or refuse.
// A contract that a new instance was the first to count for is counted elsewhere, and the outdated one must answer 503.

// outdated is an instance of the old program that runs on.
type outdated struct {
	slot
	number    int // of the instance, for the model
	phase     int // index of Report.Phases
	relay     *harness.Relay
	startedAt time.Time
	leave     func() error // after which finish does not see it
	wake      func() error // before which it answers nothing; nil: it answers all the time
	contracts []outdatedContract
}

// outdatedContract is an account in the phase of an outdated instance.
type outdatedContract struct {
	*metered
	kind string
}

// The kinds of contracts, by who is the first to count for them, which decides where they are counted.
const (
	openKind   = "open"   // an old instance, before the upgrade
	sharedKind = "shared" // a new instance, after it
	lateKind   = "late"   // whoever comes first, after it; and a sub-client that an agency of openKind gets then
)

const (
	// outdatedLookInterval is how often a program looks whether the log's format was raised.
	outdatedLookInterval = 5 * time.Second
	// outdatedTimeout is how long the registry may believe that an outdated instance runs, and how long that may take to end.
	outdatedTimeout = time.Minute
)

// finishWithOutdated finishes the upgrade while instances of the old program run on, and uses them until they end.
func (r *run) finishWithOutdated(ctx context.Context) error {
	canBe, err := r.canBeOutdated(ctx)
	if err != nil {
		return err
	}
	if !canBe {
		r.logf("no instance of %s is outdated when the upgrade is finished: it knows the format, or does not look at it", r.Before)
		return errors.Join(r.finish(ctx), sleep(ctx, 2*time.Second)) // clients continue with it for a while
	}
	if err := r.startOutdated(ctx); err != nil {
		return err
	}
	finishedAt := time.Now()
	if err := r.finish(ctx); err != nil {
		return err
	}
	for _, o := range r.outdated {
		if err := r.useOutdated(ctx, o, finishedAt); err != nil {
			return fmt.Errorf("%s: %w", o.name, err)
		}
	}
	return errors.Join(r.checkRefusesStart(ctx), r.pruneReadModels(ctx))
}

// pruneReadModels drops the read models that only the old program has, as an operator does after an upgrade. An instance that had lost
// Postgres is still named as the one that fills them, so that they would seem to be behind for ever.
func (r *run) pruneReadModels(ctx context.Context) error {
	admin, err := r.admin(r.balancer[0])
	if err != nil {
		return err
	}
	return harness.Retry(ctx, outdatedTimeout, time.Second, func() error {
		if _, err := admin.Post(ctx, "/projections:prune", body.Empty{}); err != nil {
			return err
		}
		raw, err := admin.Get(ctx, "/projections", nil)
		var all body.Projections
		if err == nil {
			err = json.Unmarshal(raw, &all)
		}
		newest := map[string]int{}
		for _, g := range all.Results {
			newest[g.Name] = max(newest[g.Name], g.Version)
		}
		for _, g := range all.Results {
			if g.Version < newest[g.Name] {
				return fmt.Errorf("%s is still there", g.Generation)
			}
		}
		return err
	})
}

// canBeOutdated reports whether the old program ends when the upgrade is finished: it does not know the format that the log gets, and looks
// at the log's format. The log has the highest format that the old program knows.
func (r *run) canBeOutdated(ctx context.Context) (bool, error) {
	admin, err := r.admin(r.balancer[0])
	if err != nil {
		return false, err
	}
	status, err := readUpgrade(admin.Get(ctx, "/upgrade", nil))
	r.sharesUsage = status.Format >= event.SharedUsageFormat
	return status.Format >= event.CheckedFormat && status.Format < status.KnownFormat, err
}

// startOutdated starts the instances that will be outdated, has them count, and waits until finish does not see them.
func (r *run) startOutdated(ctx context.Context) error {
	cutOff := &outdated{slot: slot{name: "cut-off"}, number: 1}
	cutOff.leave = func() error {
		cutOff.relay.Cut()
		return nil
	}
	r.outdated = append(r.outdated, cutOff)
	if harness.CanSuspend {
		frozen := &outdated{slot: slot{name: "frozen"}, number: 2}
		frozen.leave = func() error { return frozen.service.Suspend() }
		frozen.wake = func() error { return frozen.service.Resume() }
		r.outdated = append(r.outdated, frozen)
	}
	for _, o := range r.outdated {
		if err := r.startOne(ctx, o); err != nil {
			return fmt.Errorf("%s: %w", o.name, err)
		}
	}
	for _, o := range r.outdated {
		if err := o.leave(); err != nil {
			return fmt.Errorf("%s: %w", o.name, err)
		}
	}
	r.logf("the old instances have left, waiting until finish does not see them")
	if err := r.waitUnblocked(ctx); err != nil {
		return err
	}
	return sleep(ctx, untilAfterLook(time.Since(cutOff.startedAt)))
}

// untilAfterLook returns how long it is until an instance that runs for a while has just looked at the log's format, so that it serves as
// long as possible before it looks again.
func untilAfterLook(running time.Duration) time.Duration {
	const after = outdatedLookInterval / 5 // a look and the start of an instance take a while
	return (outdatedLookInterval + after - running%outdatedLookInterval) % outdatedLookInterval
}

// startOne starts one of them, opens the contracts that it counts for before the upgrade, and those that nobody counts for yet.
func (r *run) startOne(ctx context.Context, o *outdated) (err error) {
	if o.relay, err = harness.StartRelay(ctx, r.Postgres); err != nil {
		return err
	}
	if err := r.startOnPostgres(ctx, &o.slot, false, o.relay.URL); err != nil {
		return err
	}
	o.startedAt = time.Now()
	o.phase = r.addPhase(strings.ReplaceAll(o.name, "-", " "))
	for _, kind := range []string{openKind, sharedKind} {
		agency := o.name + "-" + kind + "-agency"
		for _, open := range []func() error{
			func() error { return r.openOutdated(ctx, o, kind, "", "") },
			func() error { return r.openOutdated(ctx, o, kind, "-agency", "") },
			func() error { return r.becomeAgency(ctx, agency) },
			func() error { return r.openOutdated(ctx, o, kind, "-client", agency) },
		} {
			if err := open(); err != nil {
				return err
			}
		}
	}
	return r.askOpen(ctx, o)
}

// askOpen has the instance count for the contracts of openKind.
func (r *run) askOpen(ctx context.Context, o *outdated) error {
	for _, c := range o.contracts {
		if c.kind != openKind {
			continue
		}
		if err := waitKnown(ctx, &o.slot, c.key); err != nil {
			return err
		}
		if status := r.readOutdated(ctx, o, c); status != http.StatusOK {
			return fmt.Errorf("before the upgrade %s gets %d", c.id, status)
		}
		c.outdatedServed.Store(0) // it is not outdated yet
	}
	return nil
}

// openOutdated opens an account in the phase of an instance, with a quarter of the cap of the other phases: there are several. The end
// of its id distinguishes accounts of one kind.
func (r *run) openOutdated(ctx context.Context, o *outdated, kind, end, agency string) error {
	a, err := r.addMetered(ctx, o.phase, o.name+"-"+kind+end, agency, max(r.Cap/4, 1))
	if err == nil {
		o.contracts = append(o.contracts, outdatedContract{a, kind})
	}
	return err
}

// becomeAgency activates the agency mode of an account.
func (r *run) becomeAgency(ctx context.Context, id string) error {
	admin, err := r.admin(r.balancer[0])
	if err != nil {
		return err
	}
	_, err = r.command(model.BecomeAgency{}, id, http.StatusOK, func() (json.RawMessage, error) {
		return admin.Post(ctx, "/accounts/"+id+":agency", body.ChangeAgency{})
	})
	return err
}

// waitUnblocked waits until the registry takes no old instance for a running one.
func (r *run) waitUnblocked(ctx context.Context) error {
	admin, err := r.admin(r.balancer[0])
	if err != nil {
		return err
	}
	return harness.Retry(ctx, outdatedTimeout, 100*time.Millisecond, func() error {
		status, err := readUpgrade(admin.Get(ctx, "/upgrade", nil))
		if err == nil && slices.ContainsFunc(status.Instances, func(i body.RunningInstance) bool { return i.IsBlocking }) {
			err = errors.New("an instance that has left still blocks the upgrade")
		}
		return err
	})
}

// useOutdated spends the quotas of an outdated instance's contracts, with it until it ends, and then without it. finishedAt is when the
// upgrade was finished.
func (r *run) useOutdated(ctx context.Context, o *outdated, finishedAt time.Time) error {
	if err := r.useShared(ctx, o); err != nil {
		return err
	}
	began := finishedAt
	asking, stop := context.WithCancel(ctx)
	var clients sync.WaitGroup
	defer func() {
		stop() // they wait for a frozen instance
		clients.Wait()
	}()
	r.startAsking(asking, &clients, o, o.contracts)
	late, err := r.openLate(ctx, o)
	if err != nil {
		return err
	}
	if o.wake != nil { // by now each client has sent it a request
		began = time.Now()
		if err := o.wake(); err != nil {
			return err
		}
	}
	r.startAsking(asking, &clients, o, late)
	clients.Wait()
	r.checkEnded(o)
	r.report.Phases[o.phase].Seconds = time.Since(began).Seconds()
	r.checkAsked(o)
	return r.spend(ctx, o)
}

// useShared sends the new instances some requests of the contracts that are to be counted in shared streams.
func (r *run) useShared(ctx context.Context, o *outdated) error {
	var clients sync.WaitGroup
	for _, c := range o.contracts {
		if c.kind == sharedKind {
			clients.Go(func() {
				for range min(c.quota/4, 10) { // the outdated instance has few seconds
					r.read(ctx, c.metered)
				}
			})
		}
	}
	clients.Wait()
	return context.Cause(ctx)
}

// openLate opens the contracts of lateKind.
func (r *run) openLate(ctx context.Context, o *outdated) ([]outdatedContract, error) {
	before := len(o.contracts)
	err := r.openOutdated(ctx, o, lateKind, "", "")
	if err == nil {
		err = r.openOutdated(ctx, o, lateKind, "-client", o.name+"-"+openKind+"-agency")
	}
	return o.contracts[before:], err
}

// startAsking starts two clients for each contract.
func (r *run) startAsking(ctx context.Context, clients *sync.WaitGroup, o *outdated, contracts []outdatedContract) {
	for _, c := range contracts {
		for range 2 {
			clients.Go(func() { r.ask(ctx, o, c) })
		}
	}
}

// ask asks the outdated instance for requests of a contract until it ends, and the new ones for some in between.
func (r *run) ask(ctx context.Context, o *outdated, c outdatedContract) {
	for n := 1; ctx.Err() == nil; n++ {
		status := r.readOutdated(ctx, o, c)
		if status == refused {
			return
		}
		if n%4 == 0 {
			r.read(ctx, c.metered)
		}
	}
}

// refused is the status of a request whose connection was refused.
const refused = -1

// readOutdated sends a request of a contract to an outdated instance, and returns its status: 0 without an answer.
func (r *run) readOutdated(ctx context.Context, o *outdated, c outdatedContract) (status int) {
	a := r.sendOnce(ctx, c.meteredRequest(), o.target.Load().host, o.number)
	switch {
	case a.isRefused():
		return refused
	case a.status == 0:
		c.cut.Add(1)
		r.countCut(false)
	case a.status == http.StatusOK:
		c.served.Add(1)
		c.outdatedServed.Add(1)
	case a.status == http.StatusTooManyRequests:
		c.spent.Add(1)
	case a.status == http.StatusServiceUnavailable:
		c.outdatedRefused.Add(1)
	case a.status == http.StatusUnauthorized && c.kind == lateKind: // the model knows how long a key may be unknown
	default:
		r.reportViolation("%s answers %d for %s: %.100s", o.name, a.status, c.id, a.body)
	}
	if c.kind == sharedKind && !r.sharesUsage && a.status != 0 && a.status != http.StatusServiceUnavailable {
		r.reportViolation("%s answers %d for %s, which is counted in a stream that it does not know", o.name, a.status, c.id)
	}
	return a.status
}

// checkEnded checks that an outdated instance ends by itself, and says which program to start.
func (r *run) checkEnded(o *outdated) {
	select {
	case <-o.service.Exited():
	case <-time.After(outdatedTimeout):
		r.reportViolation("%s did not end", o.name)
	}
	if err := o.service.Stop(); !saysWhatToStart(err) {
		r.reportViolation("%s ended with %v, and does not say what to start", o.name, err)
	}
}

// saysWhatToStart reports whether an instance ended because it does not know the log's format.
func saysWhatToStart(err error) bool {
	return err != nil && strings.Contains(err.Error(), "exit status 1") && strings.Contains(err.Error(), "start lieudit")
}

// checkAsked says what an outdated instance answered, and checks that it was asked for contracts that it cannot count for.
func (r *run) checkAsked(o *outdated) {
	for _, kind := range []string{openKind, sharedKind, lateKind} {
		var served, refused int64
		for _, c := range o.contracts {
			if c.kind == kind {
				served, refused = served+c.outdatedServed.Load(), refused+c.outdatedRefused.Load()
			}
		}
		r.logf("%s: %d requests of contracts that are %s answered 200, %d answered 503", o.name, served, kind, refused)
		if kind == sharedKind && served+refused == 0 {
			r.reportViolation("%s ended before it was asked for contracts in shared streams, so that nothing was tested", o.name)
		}
	}
}

// spend uses up the quotas of all contracts at the new instances.
func (r *run) spend(ctx context.Context, o *outdated) error {
	var clients sync.WaitGroup
	for _, c := range o.contracts {
		clients.Go(func() {
			for ctx.Err() == nil && r.read(ctx, c.metered) == http.StatusOK {
			}
		})
	}
	clients.Wait()
	return context.Cause(ctx)
}

// checkRefusesStart checks that the old program, started again, does not serve.
func (r *run) checkRefusesStart(ctx context.Context) error {
	again := &slot{name: r.outdated[0].name}
	err := r.startInstance(ctx, again, false)
	if err == nil {
		again.service.Kill()
	}
	if !saysWhatToStart(err) {
		r.reportViolation("the old program, started after the upgrade: %v", err)
	}
	return context.Cause(ctx)
}

// remove ends an outdated instance, and its relay.
func (o *outdated) remove() error {
	if o.service != nil {
		o.service.Kill()
	}
	if o.relay == nil {
		return nil
	}
	return o.relay.Close()
}
