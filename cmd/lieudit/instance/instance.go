// Package instance is one instance of lieudit as a value: its HTTP handlers, and what works in the background for them. It opens
// no socket, connects to no server and locks no folder: package service does that and hands in the parts, and so does the
// simulation (cmd/bench/simulation), which has its own. The package decides nothing about requests or events; it wires.
//
//	API() ──> keyring.Ring <─────────────────────────────────┐
//	   │   ├──> Parts.Vintage                                │
//	   │   └──> Parts.Router                                 │
//	   │                                                     │
//	Area() ──> commands ──> Parts.Core, Usage ──> feed ──────┤
//	   │                                                     │
//	   └──> queries ──> Parts.Registry <── projector.Projector
//	            └─────> changes.Notifier (last change of an account's sites)
//
// New builds an instance, and CheckStart reports whether it may start. Work then runs what the answers depend on (key ring, projector,
// change notifier, usage meter, closing of periods), and Watch ends the instance on an unknown format of the log or a wrong vault.
// An instance stops in this order: requests, Watch, Work, Close.
//
// There are two clocks. Parts.Clock is wall time, for days, periods and stamps. Elapsed time (timers, leases, staleness) is that of
// package time, which only runs forward.
package instance

import (
	"cmp"
	"context"
	"io"
	"log/slog"
	"net/netip"
	"net/url"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"

	"lieudit/commands"
	"lieudit/commands/account"
	"lieudit/commands/areatoken"
	"lieudit/commands/deployment"
	"lieudit/commands/locations"
	"lieudit/commands/repair"
	"lieudit/commands/usage"
	"lieudit/eventstore"
	"lieudit/eventstore/clock"
	"lieudit/eventstore/disk/osfile"
	"lieudit/eventstore/sqldb"
	"lieudit/eventstore/vault"
	"lieudit/eventstore/waitlimit"
	"lieudit/http/api"
	"lieudit/http/budget"
	"lieudit/http/clientip"
	"lieudit/http/customerarea"
	"lieudit/projections/changes"
	"lieudit/projections/keyring"
	"lieudit/projections/projector"
	"lieudit/projections/searchindex"
	usageprojections "lieudit/projections/usage"
	"lieudit/queries/address/live"
	"lieudit/queries/locations/alert"
	"lieudit/queries/locations/geocode"
	"lieudit/queries/locations/meili"
	"lieudit/queries/route"
	"lieudit/schemas/body"
	"lieudit/schemas/event"
	"lieudit/schemas/table"
	"lieudit/schemas/token"
)

// Settings are what an operator decides about answers. Sizes are bytes. TokenPrefixes are required.
type Settings struct {
	PeriodGrace         time.Duration         // how long after its end a period still accepts late ticks before it is closed
	ClosingInterval     time.Duration         // mean pause between two rounds of closing periods; 0: ten minutes
	UsageShards         int64                 // over how many streams of the usage log contracts are spread, from a month that is opened next; 0: one
	StrictCounting      bool                  // count everything the specification does not exempt; otherwise in the customer's favour
	Unthrottled         bool                  // publishable keys are not throttled: a proxy does it
	BodyBudget          int64                 // bytes of large request bodies in memory; 0: DefaultBodyBudget
	AccountBodyBudget   int64                 // of these, the bytes of one account; 0: half of BodyBudget
	AnswerBudget        int64                 // bytes of large answers in memory; 0: DefaultAnswerBudget
	AccountAnswerBudget int64                 // of these, the bytes of one account; 0: half of AnswerBudget
	SnapshotThreshold   int                   // bytes of an account's events after which its sites are kept in a file; 0: commands.DefaultSnapshotThreshold
	SiteEvents          locations.EventLimits // how many rows of sites one event has; zero: locations.DefaultEventLimits
	TrustedProxies      []netip.Prefix        // in front of the API; what they say of their connections is the client's address
	TokenPrefixes       token.Prefixes
	AcceptLostKeys      bool // serve although the vault lost keys that the log needs
	AcceptClock         bool // an operator says that the clock is right: what was counted in periods that have not begun is taken back
	Demo                bool // open the demo account on an empty log
}

// DefaultBodyBudget is the cap in bytes of large request bodies in memory at once.
const DefaultBodyBudget = 256 << 20

// DefaultAnswerBudget is the cap in bytes of large answers in memory at once.
const DefaultAnswerBudget = 256 << 20

// Parts are what an instance is made of. The instance uses them and closes only the vault. SiteEngine, SiteIndexer, CoreTimeAtOpen and
// UsageTimeAtOpen may be nil; everything else is required.
type Parts struct {
	Settings
	Core, Usage     eventstore.Store // may be the same
	CoreTimeAtOpen  func() time.Time // time of the last event of a core log that this instance alone has opened
	UsageTimeAtOpen func() time.Time // the same of the usage log
	AreaURL         func() *url.URL  // where browsers reach the customer area; called once requests come
	APIURL          func() *url.URL  // where customers reach the API; called once requests come
	IsStopping      func() bool      // the service is to end: streams of events end then
	Registry        *sqldb.Registry
	Vault           *vault.Vault
	OwnsLogs        bool        // no other instance can use the logs
	NewLogFormat    int         // the format that a log gets which no program has used; 0: the highest. A simulation plays upgrades with it
	OwnsReadModels  bool        // no other instance can use the registry: leases of dead ones are taken over at once
	Folder          string      // for the operator's token, snapshots and files of clients; of this instance alone
	Disk            osfile.Disk // of the files in Folder that it can do without: the snapshots

	Vintage     *live.Vintage
	SiteAlerts  *alert.Checker
	Router      route.Router
	Releases    customerarea.Releases
	Readiness   func(ctx context.Context, language string) body.Readiness // as customerarea.Maintenance has it
	SiteEngine  *meili.Engine                                             // nil: sites are searched in memory
	SiteIndexer *searchindex.Indexer                                      // fills the index that SiteEngine searches; nil without it

	Clock   *clock.Clock // wall time
	Metrics *prometheus.Registry
	Log     *slog.Logger
	Out     io.Writer // receives the text that people read at start
	Version string
}

// Instance is an instance that is built. Its methods are safe for concurrent use.
type Instance struct {
	Parts
	vault        *vault.Bound  // data keys of personal fields
	vaultChanged chan struct{} // receives a value when a vault becomes valid
	waitLimiter  *waitlimit.Limiter
	keyRing      *keyring.Ring
	projector    *projector.Projector
	changes      *changes.Notifier
	accounts     *account.Accounts
	tokens       *areatoken.Tokens
	repairs      *repair.Repairs
	deployment   *deployment.Deployment
	usage        *usage.Meter
	locations    *locations.Locations
	hasCaughtUp  atomic.Bool                       // the read models caught up once
	periodsAhead atomic.Pointer[periodsAheadError] // what voidPeriodsAhead found last; nil: nothing
	usageLoss    atomic.Pointer[usageLoss]         // what the start found; nil: nothing
	codec        *eventstore.Codec
	clients      *clientip.Finder
	bodyBudget   *budget.Budget
	answerBudget *budget.Budget
	uploadBudget *budget.Budget // of files on disk
	workers      *budget.Budget // of costly queries
	lists        *budget.Budget // of long lists: how many are read at once
	handlers     handlers
}

// New builds an instance. Its only I/O is to make the folder for uploads.
func New(parts Parts) (*Instance, error) {
	i := &Instance{Parts: parts}
	i.bindVault()
	i.deployment = deployment.New(i.Core, eventstore.NewCodec(nil), i.Version) // its events have no personal texts
	codec := eventstore.NewCodec(i.vault).WithFormat(i.deployment.HasFormat)
	i.codec = codec
	i.keyRing = keyring.New(i.Core, time.Now, filepath.Join(i.Folder, KeyRingFile), i.Log)
	i.keyRing.Disk = i.Disk
	i.projector = projector.New(i.Core, codec, i.Registry, i.configuredReadModels()...)
	i.projector.AddModelFrom(i.Usage, usageprojections.Model)
	i.projector.Log, i.projector.IsOnlyInstance = i.Log, i.OwnsReadModels
	i.changes = changes.New(i.Core, func(ctx context.Context) (eventstore.Checkpoint, error) {
		return i.projector.Checkpoint(ctx, table.LocationsModel.Name)
	}, i.Log)
	i.accounts = account.New(i.Core, codec, i.TokenPrefixes, i.Now)
	i.tokens = areatoken.New(i.Core, codec, i.TokenPrefixes, i.Now)
	i.repairs = repair.New(i.Core, codec)
	i.waitLimiter = waitlimit.New(waitlimit.MaxRequests)
	i.usage = usage.New(i.Usage, codec, i.accounts, i.keyRing.Terms, i.waitLimiter, i.Clock, i.Log)
	i.usage.Shards = max(i.UsageShards, 1)
	i.locations = locations.New(i.Core, codec, i.accounts, geocode.New(i.Vintage), i.Now)
	if i.SiteEvents != (locations.EventLimits{}) {
		i.locations.LimitEvents(i.SiteEvents)
	}
	i.locations.KeepSnapshots(filepath.Join(i.Folder, FoldsFolder), cmp.Or(i.SnapshotThreshold, commands.DefaultSnapshotThreshold), i.Disk, i.Log)
	total := cmp.Or(i.Settings.BodyBudget, DefaultBodyBudget)
	i.bodyBudget = budget.New(total, cmp.Or(i.AccountBodyBudget, total/2))
	answers := cmp.Or(i.Settings.AnswerBudget, DefaultAnswerBudget)
	i.answerBudget = budget.New(answers, cmp.Or(i.AccountAnswerBudget, answers/2))
	i.uploadBudget = budget.New(maxUploads, maxAccountUploads)
	i.workers, i.lists = api.NewWorkers(), api.NewWorkers()
	i.clients = clientip.NewFinder(i.TrustedProxies, i.Log)
	i.Registry.InstanceID = i.usage.InstanceID() // the registry lists the instances that run, for reconciliation and upgrades
	i.Registry.Program, i.Registry.Format = i.Version, event.HighestFormat
	i.registerMetrics()
	return i, i.buildHandlers()
}

// Files and folders of Parts.Folder.
const (
	KeyRingFile   = "keyring"
	FoldsFolder   = "folds"
	uploadsFolder = "uploads"
)

// CheckStart reads the log's format and compares the vault with the log, for some seconds at most. It is called before Work. An error
// refuses the start: an unknown format, or a *vault.WrongError. An unreachable log or vault is not an error; Watch checks it later.
// CheckStart also finds the read models that hold what is not on the log, so that none of them answers.
func (i *Instance) CheckStart(ctx context.Context) error {
	if err := i.checkFormat(ctx); err != nil {
		return err
	}
	if err := i.checkVault(ctx); err != nil {
		return err
	}
	i.projector.VerifyGenerations(ctx)
	if loss := i.findUsageLoss(ctx); loss != nil {
		i.usageLoss.Store(loss)
		i.Log.Error("requests were lost", "reason", loss)
	}
	return nil
}

// Work runs the background parts until ctx ends, and waits for them. A part that fails does not end the others: readiness notices,
// and Work returns its error at the end.
func (i *Instance) Work(ctx context.Context) error {
	var parts errgroup.Group
	parts.Go(func() error {
		i.keyRing.Run(ctx)
		return nil
	})
	parts.Go(func() error {
		i.awaitKeyRing(ctx)
		return errorUnlessCanceled(ctx, i.projector.Run(ctx))
	})
	parts.Go(func() error { return errorUnlessCanceled(ctx, i.changes.Run(ctx)) })
	parts.Go(func() error { return errorUnlessCanceled(ctx, i.runUsageMeter(ctx)) })
	parts.Go(func() error { return i.closePeriods(ctx) })
	parts.Go(func() error { return i.voidPeriodsAhead(ctx) })
	parts.Go(func() error {
		i.Clock.Watch(ctx)
		return nil
	})
	parts.Go(func() error { return i.newReopener().reopenAccounts(ctx) })
	return parts.Wait()
}

// keyRingHeadStart limits how long the read models wait for the key ring at the start.
const keyRingHeadStart = 30 * time.Second

// awaitKeyRing waits until the key ring has read the log for the first time. Read models that are filled from the beginning of the log
// at the same time take the processor from it for minutes, in which every request is refused; the ring alone needs seconds.
func (i *Instance) awaitKeyRing(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, keyRingHeadStart)
	defer cancel()
	i.keyRing.AwaitFresh(ctx) // its error is the end of the wait
}

// Watch follows the log's format and the vault until ctx ends. It returns an error as soon as the instance must end because it cannot read
// what others write, or would seal with wrong keys.
func (i *Instance) Watch(ctx context.Context) error {
	parts, ctx := errgroup.WithContext(ctx)
	parts.Go(func() error { return i.followFormat(ctx) })
	parts.Go(func() error { return i.vault.Run(ctx) })
	return parts.Wait()
}

// NoteCutRequests notes that requests were cut before they were answered. It is called before Work is ended.
func (i *Instance) NoteCutRequests() { i.usage.NoteCutRequests() }

// Close frees the vault. It is called when no other part of the instance runs any more.
func (i *Instance) Close() error { return i.vault.Close() }

// Bodies returns the budget that counts the bytes of large request bodies in memory.
func (i *Instance) Bodies() *budget.Budget { return i.bodyBudget }

// errorUnlessCanceled drops the error of a part whose context has ended: it stopped because it had to, not because it failed.
func errorUnlessCanceled(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}
