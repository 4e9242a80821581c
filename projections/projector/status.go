package projector

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"lieudit/eventstore"
	"lieudit/eventstore/sqldb"
	"lieudit/schemas/table"
)

// Status is the state of one generation of a read model.
type Status struct {
	Model        string
	Version      int64
	Generation   string
	State        sqldb.GenerationState
	IsServedHere bool // this instance answers queries from it
	IsDiverged   bool // it holds events that are not on the log, and is not used
	Position     eventstore.Position
	LastRecorded time.Time // time of the last event in it; zero if it holds none
	WaitingSince time.Time // when the first event that it lacks was recorded; zero if it lacks none
	Lag          int       // how many events of the log it lacks, up to MaxLag; -1 if unknown
	Owner        string    // id of the instance that fills it, "" for none
	Reason       string    // why it cannot continue, "" if it can
}

// MaxLag is the largest lag that is counted.
const MaxLag = 10_000

// Status describes all existing generations, including those of other versions and of models that this program does not know.
func (p *Projector) Status(ctx context.Context) ([]Status, error) { return p.status(ctx, MaxLag) }

// status is Status with a lag that is counted up to maxLag.
func (p *Projector) status(ctx context.Context, maxLag int) ([]Status, error) {
	generations, err := p.registry.Generations(ctx)
	if err != nil {
		return nil, err
	}
	all := make([]Status, len(generations))
	for i, g := range generations {
		all[i] = p.generationStatus(ctx, g, maxLag)
	}
	return all, nil
}

// generationStatus describes one generation. An error in finding that out becomes its Reason.
func (p *Projector) generationStatus(ctx context.Context, g sqldb.Generation, maxLag int) Status {
	s := Status{Model: g.Model, Version: g.Version, Generation: g.Name, State: g.State, Lag: -1}
	if g.State == sqldb.Creating {
		return s // it has no tables yet
	}
	at, checkpoint, err := p.readCheckpoint(ctx, g)
	if err != nil {
		s.Reason = err.Error()
		return s
	}
	s.Position, s.LastRecorded, s.Owner, s.Reason = checkpoint.Position, at.Recorded.Time(), at.LeaseHolder, at.StopReason
	if w := p.workerOf(g.Name); w != nil && s.Reason == "" { // a full disk cannot store a reason
		s.Reason = w.currentState().reason
	}
	m, err := p.modelNamed(g.Model)
	if err != nil {
		return s
	}
	s.IsServedHere, s.IsDiverged = g.IsOf(m.ReadModel) && g.State == sqldb.Serving, p.registry.IsDiverged(g)
	if s.Lag, s.WaitingSince, err = p.measureLag(ctx, checkpoint, m, maxLag); err != nil && s.Reason == "" {
		s.Reason = err.Error()
	}
	return s
}

// readCheckpoint opens a generation and reads its checkpoint, both as the row and as a log position.
func (p *Projector) readCheckpoint(ctx context.Context, g sqldb.Generation) (at table.Checkpoint, checkpoint eventstore.Checkpoint, err error) {
	db, release, err := p.registry.OpenGeneration(ctx, g)
	if err != nil {
		return at, checkpoint, err
	}
	defer release()
	if at, err = (lease{db: db}).readCheckpoint(ctx); err == nil {
		checkpoint, err = checkpointOf(at)
	}
	return at, checkpoint, err
}

// measureLag counts the events of a model's categories after a checkpoint, up to maxLag, and returns when the first of them
// was recorded.
func (p *Projector) measureLag(ctx context.Context, checkpoint eventstore.Checkpoint, m Model, maxLag int) (n int, since time.Time, err error) {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	for s, err := range p.storeOf(m).ReadAll(ctx, checkpoint, m.Categories()) {
		if err != nil {
			return -1, time.Time{}, err
		}
		if s.Kind == eventstore.EventAppeared {
			if n++; n == 1 {
				since = s.Event.Time
			}
		}
		if n == maxLag {
			break
		}
	}
	return n, since, nil
}

// readyLag is the largest lag at which a read model still counts as ready.
const readyLag = 500

// Ready returns nil if every model has a generation that serves, is not stuck, and has almost caught up; otherwise it
// describes what is missing.
func (p *Projector) Ready(ctx context.Context) error {
	return p.checkServed(ctx, func(Status) bool { return true })
}

// CaughtUp returns nil once no query is answered from old rows. It is Ready, except that a diverged generation does not
// count, because it is not used.
func (p *Projector) CaughtUp(ctx context.Context) error {
	return p.checkServed(ctx, func(s Status) bool { return !s.IsDiverged })
}

// checkServed is Ready for the served generations that isChecked selects. It counts no lag beyond readyLag: counting reads the log, and
// readiness is asked for most often while read models are filled, which read it too.
func (p *Projector) checkServed(ctx context.Context, isChecked func(Status) bool) error {
	all, err := p.status(ctx, readyLag+1)
	if err != nil {
		return err
	}
	isServed := map[string]bool{}
	for _, s := range all {
		if !s.IsServedHere {
			continue
		}
		isServed[s.Model] = true
		switch {
		case !isChecked(s):
		case s.Reason != "":
			err = errors.Join(err, fmt.Errorf("%s: %s", s.Generation, strings.TrimPrefix(s.Reason, s.Generation+": "))) // databases name it too
		case s.Lag > readyLag:
			err = errors.Join(err, fmt.Errorf("%s: more than %d events behind", s.Generation, readyLag))
		}
	}
	for _, m := range p.models {
		if !isServed[m.Name] {
			err = errors.Join(err, p.explainNotReady(m))
		}
	}
	return err
}

// explainNotReady is the error of a model without a serving generation.
func (p *Projector) explainNotReady(m Model) error {
	if why := p.registry.Replacement(m.ReadModel); why != "" {
		return fmt.Errorf("%s: %w: %s", m.Name, sqldb.ErrNotReady, why)
	}
	return fmt.Errorf("%s: %w", m.Name, sqldb.ErrNotReady)
}

// UnreadableAccounts returns accounts that some generation has stopped because a personal field could not be decrypted: in
// the order of their ids, those after an account, at most limit.
func (p *Projector) UnreadableAccounts(ctx context.Context, after string, limit int) (all []string, err error) {
	err = p.eachGeneration(ctx, func(_ sqldb.Generation, db *sqldb.DB) error {
		rows, err := sqldb.Select(ctx, db, table.AccountStatuses, "where kind = ? and account > ? order by account limit ?", table.AccountUnreadable, after, limit)
		for _, s := range rows {
			all = append(all, s.Account)
		}
		return err
	})
	slices.Sort(all)
	all = slices.Compact(all)
	return all[:min(limit, len(all))], err
}

// Incidents returns nil if no account is stopped or has a note, no empty commit was skipped and no scrub has failed; otherwise an error
// that names them. It does not make the instance unready: the other accounts are served.
func (p *Projector) Incidents(ctx context.Context) error {
	all, err := p.StoppedAccounts(ctx)
	if err != nil {
		return err
	}
	err = p.failedScrubs()
	var texts []string
	generationsByText := map[string][]string{}
	for _, s := range all {
		for _, text := range s.incidentTexts() {
			if generationsByText[text] == nil {
				texts = append(texts, text)
			}
			generationsByText[text] = append(generationsByText[text], s.Generation)
		}
	}
	for _, text := range texts {
		err = errors.Join(err, fmt.Errorf("%s: %s", strings.Join(generationsByText[text], ", "), text))
	}
	return err
}

// failedScrubs returns the errors of the scrubs that failed and are this instance's to make, or nil.
func (p *Projector) failedScrubs() (err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(p.workers)) {
		if failure := p.workers[name].scrubErr.Load(); failure != nil {
			err = errors.Join(err, fmt.Errorf("%s: %w: %w", name, errScrubFailed, *failure))
		}
	}
	return err
}

// incidentTexts are the lines that Incidents shows for the account.
func (s StoppedAccount) incidentTexts() (all []string) {
	if s.IsStopped() {
		all = append(all, (&table.StoppedError{AccountStatus: s.AccountStatus}).Error())
	}
	if s.HasNote() {
		all = append(all, fmt.Sprintf("%s@%d: %s", s.Stream, s.Revision, s.Reason))
	}
	if s.FirstEmptyCommit != 0 {
		all = append(all, fmt.Sprintf("account %s: a commit without a sync id at position %d changed nothing and was passed over", s.Account, s.FirstEmptyCommit))
	}
	return all
}

// StoppedAccount is an account that a generation has stopped, in which it skipped a commit without a sync id, or about which it has a
// note.
type StoppedAccount struct {
	Generation string
	table.AccountStatus
}

// maxStopped is the largest number of accounts of one generation that StoppedAccounts returns.
const maxStopped = 100

// StoppedAccounts returns the accounts that the generations in use or under construction have stopped, at most 100 of each.
func (p *Projector) StoppedAccounts(ctx context.Context) (all []StoppedAccount, err error) {
	err = p.eachGeneration(ctx, func(g sqldb.Generation, db *sqldb.DB) error {
		rows, err := sqldb.Select(ctx, db, table.AccountStatuses, "where kind <> '' or empty <> 0 or reason <> '' order by kind desc, account limit ?", maxStopped)
		for _, s := range rows {
			all = append(all, StoppedAccount{g.Name, s})
		}
		return err
	})
	return all, err
}

// The rest of this file detects diverged generations: their checkpoint names an event that the log does not hold, because an
// older backup of the log was restored. The rows of such a generation may come from events that are gone, so it answers no
// queries. Each instance detects this for itself: its feed fails with an eventstore.DivergedError, or verifyGeneration reads
// the log after the checkpoint. The generation is used again once the log holds the event again; otherwise a rebuild replaces
// it.

// verifyTimeout is how long a verification waits for the log.
const verifyTimeout = time.Second

// rebuildHint tells the operator what to do about a diverged generation.
const rebuildHint = "`lieudit projections rebuild --all` makes the read models anew from the log as it is"

// stopReason is the text of why a generation cannot be filled. If its checkpoint is not on the log, the generation is also
// marked as diverged.
func (w *worker) stopReason(err error) string {
	diverged, ok := errors.AsType[*eventstore.DivergedError](err)
	if !ok {
		return err.Error()
	}
	w.setDiverged(true)
	switch {
	case diverged.IsOtherLog && w.lease.isOnlyInstance: // the folder's log is the right one, so the file belongs to another service
		w.rebuild()
		return fmt.Sprintf("%s; nothing is answered from it: it is made again from this log", err)
	case diverged.IsOtherLog: // another log is connected: the operator must restore the right one, not rebuild
		return fmt.Sprintf("%s; nothing is answered from it", err)
	}
	return fmt.Sprintf("%s; nothing is answered from it: %s", err, rebuildHint)
}

// rebuildTimeout is how long the registry may take to enter a new generation.
const rebuildTimeout = 10 * time.Second

// rebuildOnceFunc returns a function that begins a fresh generation of a model, until it has succeeded once.
func (p *Projector) rebuildOnceFunc(m Model) func() {
	var mu sync.Mutex
	isDone := false
	return func() {
		mu.Lock()
		defer mu.Unlock()
		if isDone {
			return
		}
		ctx, cancel := context.WithTimeout(context.Background(), rebuildTimeout)
		defer cancel()
		if _, err := p.Rebuild(ctx, m.Name); err != nil {
			p.Log.Error("a read model of another log cannot be made again", "model", m.Name, "reason", err)
			return
		}
		isDone = true
	}
}

// VerifyGenerations finds the serving generations that have diverged. It is called before Run, so that none of them answers a
// query. It takes at most a second; a generation that is not verified by then counts as valid.
func (p *Projector) VerifyGenerations(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, verifyTimeout)
	defer cancel()
	all, err := p.registry.Generations(ctx)
	if err != nil {
		return
	}
	var checks sync.WaitGroup
	for _, g := range all {
		if m, err := p.modelNamed(g.Model); err == nil && g.IsOf(m.ReadModel) && g.State == sqldb.Serving {
			checks.Go(func() { p.verifyGeneration(ctx, m, g) })
		}
	}
	checks.Wait()
}

// verifyGeneration marks a generation as diverged or not. If the log does not answer in time, nothing changes.
func (p *Projector) verifyGeneration(ctx context.Context, m Model, g sqldb.Generation) {
	ctx, cancel := context.WithTimeout(ctx, verifyTimeout)
	defer cancel()
	_, checkpoint, err := p.readCheckpoint(ctx, g)
	if err != nil {
		return
	}
	err = verifyCheckpoint(ctx, p.storeOf(m), checkpoint, m)
	if _, diverged := errors.AsType[*eventstore.DivergedError](err); err == nil || diverged {
		p.registry.SetDiverged(g, diverged)
	}
}

// verifyCheckpoint reads the first signal after a checkpoint. It fails with an eventstore.DivergedError if the log does not
// hold the checkpoint.
func verifyCheckpoint(ctx context.Context, log eventstore.Store, checkpoint eventstore.Checkpoint, m Model) error {
	for _, err := range log.ReadAll(ctx, checkpoint, m.Categories()) {
		return err
	}
	return ctx.Err()
}

// reverifyGeneration verifies a generation that this instance found diverged, once another instance fills it without an
// error.
func (w *worker) reverifyGeneration(ctx context.Context, c table.Checkpoint) {
	if c.StopReason == "" && w.isDiverged() {
		w.verifyGeneration(ctx)
	}
}
