// Package upgrade tests that old and new programs serve side by side. Three instances of the program of an earlier commit share a node and a
// Postgres. They are exchanged one at a time for instances of this program, then for the old ones again, then for the new ones, and the upgrade
// is finished, while clients write and use up quotas. Instances are stopped in good order only, so that every answer of 5xx is a violation;
// package chaos does the kills. Two more instances of the old program run on after the upgrade is finished, because finish does not see them:
// they must count nothing that the new ones count elsewhere (outdated.go).
//
//	Run ──> harness.BuildProgram, startServers ──> phase forth, phase back, phase forth ──> startOutdated ──> finish
//	             phase ──> openMetered; for each instance: exchange, checkEqual             └──> useOutdated ──> checkEnd ──> Report
//	startClients: readMetered, writeSites ──> run.send ──> balancer: the instances in turn
//
// A client goes round the instances and, if a connection is refused, sends the request to the next one, as a proxy does. Every phase has
// accounts with small quotas of their own, so that the caps are reached while both programs count.
package upgrade

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"lieudit/cmd/bench/harness"
	"lieudit/cmd/bench/model"
)

// Options are the parameters of a run. All but Postgres and Log are required.
type Options struct {
	Dir      string // on the disk to use
	Before   string // the commit of the old program
	Postgres string // of an empty database; "": a server of the run's own
	Clients  int    // clients that use up quotas; as many others write
	Cap      int64  // requests of each metered account
	Log      func(what string)
}

// Report is the result of a run. Without violations, nobody noticed the upgrade except by refused connections.
type Report struct {
	Before     string        `json:"before"`
	Phases     []Phase       `json:"phases"`
	Requests   int64         `json:"requests"`            // answered
	Refused    int64         `json:"refused"`             // connections, by an instance that was exchanged
	Cut        int64         `json:"cut"`                 // connections that ended without an answer; the request was sent again
	CutByNew   int64         `json:"cut_by_this_program"` // of these, by an instance of this program
	Failed     int64         `json:"failed"`              // answers of 5xx
	Writes     int64         `json:"writes"`              // of sites, acknowledged
	Seconds    float64       `json:"seconds"`
	Longest    time.Duration `json:"-"` // the longest time of a request, from its first try to its answer
	LongestMs  int64         `json:"longest_ms"`
	Format     int           `json:"format"`   // of the log in the end
	Compared   int           `json:"compared"` // lists that were the same on all instances
	Violations []string      `json:"violations"`
}

// Phase is one exchange of all instances, or the life of an outdated one, with the answers that its accounts got.
type Phase struct {
	Name    string  `json:"name"`
	Cap     int64   `json:"cap"` // of all contracts together
	Served  int64   `json:"served"`
	Spent   int64   `json:"spent_429"`
	Counted int64   `json:"counted"` // by the log
	Cut     int64   `json:"cut"`     // requests without an answer, which may be counted
	Seconds float64 `json:"seconds"` // of the exchange; until the outdated instance ended

	OutdatedServed  int64 `json:"outdated_200"` // of Served, by the outdated instance
	OutdatedRefused int64 `json:"outdated_503"` // by the outdated instance, not in Served or Spent
}

const (
	nodeName  = "node"
	instances = 3
)

// run is one run of the test. Clients hold pause for reading during each request; a check holds it for writing. mu guards
// the report.
type run struct {
	Options
	workDir  harness.WorkDir
	old      string // path of the old program
	postgres *harness.Postgres
	node     *harness.Process
	balancer [instances]*slot
	next     atomic.Int64 // of the balancer
	operator string       // token of the customer area
	writer   writer
	model    *model.Model
	metered  atomic.Pointer[metered]
	accounts []*metered // of the phases so far
	outdated []*outdated
	pause    sync.RWMutex

	sharesUsage bool // the old program knows streams that the periods of several contracts share

	mu     sync.Mutex
	report Report
}

// slot is one position of the balancer: an instance, which is exchanged.
type slot struct {
	name    string
	service *harness.Instance
	isNew   bool
	target  atomic.Pointer[target]
}

// target is the address to which clients of a slot send their requests.
type target struct {
	host  string // and port of the API
	isNew bool   // it is of this program
}

// Run runs the test once and reports on it. The error is the reason why it could not be completed; the report then has the results until then.
func Run(ctx context.Context, o Options) (_ Report, err error) {
	r := &run{Options: o, report: Report{Before: o.Before, Violations: []string{}}}
	r.model = model.New(func(rule model.Rule, format string, args ...any) {
		r.reportViolation("%s: %s", rule, fmt.Sprintf(format, args...))
	})
	if r.workDir, err = harness.NewWorkDir(o.Dir); err != nil {
		return r.report, err
	}
	defer func() { err = errors.Join(err, r.tearDown()) }()
	if err := os.MkdirAll(r.workDir.Path("before"), 0o700); err != nil {
		return r.report, err
	}
	r.logf("building the program of %s", o.Before)
	if r.old, err = harness.BuildProgram(ctx, o.Before, r.workDir.Path("before")); err != nil {
		return r.report, err
	}
	if err := r.startServers(ctx); err != nil {
		return r.report, err
	}
	return r.report, r.runPhases(ctx)
}

// runPhases runs the phases under load, and then the checks.
func (r *run) runPhases(ctx context.Context) error {
	if err := r.openWriter(ctx); err != nil {
		return err
	}
	began := time.Now()
	stop := func() error { return nil }
	for _, p := range []struct {
		name  string
		toNew bool
	}{{"forth", true}, {"back", false}, {"forth again", true}} {
		account, err := r.openMetered(ctx, p.name)
		if err != nil {
			return errors.Join(err, stop())
		}
		if p.name == "forth" { // the clients need an account
			stop = r.startClients(ctx)
		}
		if err := r.exchangeAll(ctx, account, p.toNew); err != nil {
			return errors.Join(err, stop())
		}
	}
	err := r.finishWithOutdated(ctx)
	r.report.Seconds = time.Since(began).Seconds()
	if err := errors.Join(err, stop()); err != nil {
		return err
	}
	r.report.Writes = r.writer.writes.Load()
	r.report.LongestMs = r.report.Longest.Milliseconds()
	return r.checkEnd(ctx)
}

// startServers starts Postgres, the node and three instances of the old program. The first is ready before the others start,
// so that it writes the operator's token.
func (r *run) startServers(ctx context.Context) (err error) {
	if r.Postgres == "" {
		if r.postgres, err = harness.StartPostgres(ctx, harness.FindPostgres()); err != nil {
			return err
		}
		r.Postgres = r.postgres.URL
	}
	if r.node, err = harness.StartNode(ctx, r.workDir.WithProgram(r.old), nodeName); err != nil {
		return err
	}
	for n := range r.balancer {
		r.balancer[n] = &slot{name: fmt.Sprintf("instance-%d", n+1)}
		if err := r.startInstance(ctx, r.balancer[n], false); err != nil {
			return err
		}
	}
	r.operator, err = harness.ReadOperatorToken(ctx, r.workDir.Path(r.balancer[0].name))
	return err
}

// startInstance starts an instance of the old or of this program, and gives it requests once it is ready.
func (r *run) startInstance(ctx context.Context, s *slot, isNew bool) error {
	return r.startOnPostgres(ctx, s, isNew, r.Postgres)
}

// startOnPostgres is startInstance with another address of the Postgres.
func (r *run) startOnPostgres(ctx context.Context, s *slot, isNew bool, postgres string) (err error) {
	folder := r.workDir
	if !isNew {
		folder = folder.WithProgram(r.old)
	}
	flags := append(r.workDir.NodeFlags(nodeName), "--postgres", postgres, "--no-demo")
	if s.service, err = harness.StartInstance(ctx, folder, s.name, harness.AnyPort, flags...); err != nil {
		return err
	}
	if err := s.service.WaitReady(ctx); err != nil {
		return err
	}
	s.isNew = isNew
	s.target.Store(&target{s.service.API, isNew})
	return nil
}

// exchangeAll exchanges the instances one after another and checks after each that all answer the same. Between two exchanges clients have time
// to use the mixture.
func (r *run) exchangeAll(ctx context.Context, a *metered, toNew bool) error {
	began := time.Now()
	for _, s := range r.balancer {
		if err := s.service.Stop(); err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
		if err := r.startInstance(ctx, s, toNew); err != nil {
			return err
		}
		if err := r.checkEqual(ctx); err != nil {
			return err
		}
		if err := r.checkUpgradeStatus(ctx); err != nil {
			return err
		}
		if err := sleep(ctx, time.Second); err != nil {
			return err
		}
	}
	p := &r.report.Phases[a.phase] // which no client uses
	p.Seconds = time.Since(began).Seconds()
	r.logf("%s: all exchanged in %.1f s", p.Name, p.Seconds)
	return nil
}

// openWriter opens the account whose sites are written.
func (r *run) openWriter(ctx context.Context) error {
	key, err := r.openAccount(ctx, writerAccount, "", harness.UnlimitedQuota)
	if err != nil {
		return err
	}
	r.writer.key = key.Token
	admin, err := r.admin(r.balancer[0])
	if err != nil {
		return err
	}
	if r.writer.reader, err = admin.IssueKey(ctx, writerAccount, "reader"); err != nil {
		return err
	}
	if err := r.waitKeyKnown(ctx, r.writer.reader.Token); err != nil {
		return err
	}
	_, _, err = r.send(ctx, request{
		account: writerAccount, key: key.Token, method: "POST", path: "/locations/referentiels", endpoint: "POST /locations/referentiels",
		body: fmt.Sprintf(`{"code":%q,"nom":%[1]q}`, referential), command: model.OpenReferential{Code: referential, Name: referential},
	})
	return err
}

// tearDown ends all processes and removes their folders.
func (r *run) tearDown() error {
	for _, s := range r.balancer {
		if s != nil && s.service != nil {
			s.service.Kill()
		}
	}
	var err error
	for _, o := range r.outdated {
		err = errors.Join(err, o.remove())
	}
	if r.node != nil {
		r.node.Kill()
	}
	if r.postgres != nil {
		err = errors.Join(err, r.postgres.Remove())
	}
	return errors.Join(err, r.workDir.Remove())
}

// reportViolation adds a violation, up to a readable number.
func (r *run) reportViolation(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.report.Violations) < 50 {
		r.report.Violations = append(r.report.Violations, fmt.Sprintf(format, args...))
	}
}

func (r *run) logf(format string, args ...any) {
	if r.Log != nil {
		r.Log(fmt.Sprintf(format, args...))
	}
}

// sleep waits. If ctx ends first, it returns the reason.
func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(d):
		return nil
	}
}
