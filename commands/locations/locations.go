// Package locations handles the commands on an account's referentials and their sites. One account is one stream. Unique
// codes, the cap of referentials, the ceiling of sites and suspicious reductions are decided on that stream alone, and a State
// holds no contents. For each content it holds a digest, which shows whether a new content is the same, and a reference to the
// event that has it.
//
//	WriteBatch, PutSite, PatchSite                        ArchiveReferential, DeactivateSite, …
//	  │ newWriteJob: each Row ──> a wantedSite              │
//	  │ prepareJob: classifyRows on the current state,      │
//	  │   then geocode what would be written                │
//	  └ Handler.Handle: writeJob.decide ──> siteChanges <───┘ a decision without I/O
//	                         stager.buildEvents ──> SitesChanged, or SyncStaged… on a stream of their own and SyncCommitted
//	                         readSite, findCommuneSites; readOutcome for a request that is repeated ──> what is shown, read back from the log
//
// Geocoding is slow, so it is done before the stream's lock is taken. The decision repeats the classification on its state,
// and has only the rows geocoded that need it by then.
//
// A referential is a group of sites under a code, such as all shops of a brand.
package locations

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"lieudit/commands"
	"lieudit/eventstore"
	"lieudit/eventstore/disk/osfile"
	"lieudit/schemas/locations"
	"lieudit/schemas/plan"
	"lieudit/schemas/refusal"
)

// Plans returns the plan that limits an account now. It is read before a command locks the stream: a change of plan made
// meanwhile limits the next command.
type Plans interface {
	PlanOf(ctx context.Context, account string) (plan.Plan, error)
}

// Geocoder finds the position of a site's address. found is false for a content with neither an address nor a BAN id, for an
// address that is not found, and if the context ends. An address with a house number is found with its number or not at all. An error means that the lookup was not possible, and the write fails: otherwise the site
// would be stored without a position and stay without one. It must be safe for concurrent use.
type Geocoder interface {
	Geocode(ctx context.Context, c locations.Content) (position locations.Position, found bool, err error)
}

// Locations handles the commands on referentials and sites. Each command returns the log position that a read model must reach
// to show its effect. An error of what is read afterwards to be shown does not mean that nothing was written. It is safe for concurrent use.
type Locations struct {
	handler  *commands.Handler[State]
	store    eventstore.Store
	codec    *eventstore.Codec
	plans    Plans
	geocoder Geocoder
	now      func() time.Time
	limits   EventLimits
}

// New returns the handler for the referentials and sites of a log.
func New(store eventstore.Store, codec *eventstore.Codec, plans Plans, geocoder Geocoder, now func() time.Time) *Locations {
	return &Locations{commands.NewHandler(Aggregate, store, codec), store, codec, plans, geocoder, now, DefaultEventLimits}
}

// LimitEvents sets the limits of the events that hold many rows. It must be called before the first command.
func (l *Locations) LimitEvents(limits EventLimits) { l.limits = limits }

// KeepSnapshots keeps states in files of a folder that belongs to this instance alone, so that an account with a long history
// is ready soon after a restart: see commands.Handler. The files can be deleted at any time. KeepSnapshots must be called
// before the first command.
func (l *Locations) KeepSnapshots(folder string, threshold int, disk osfile.Disk, log *slog.Logger) {
	l.handler.KeepSnapshots(folder, threshold, disk, log)
}

// Counts are the numbers of an account's active sites and of its referentials that are not archived.
type Counts struct{ Sites, Referentials int }

// CountLocations counts an account's referentials and sites as of the end of the log.
func (l *Locations) CountLocations(ctx context.Context, account string) (Counts, error) {
	var counts Counts
	err := l.handler.View(ctx, account, func(s *State) { counts = Counts{s.activeSites, s.openReferentials} })
	return counts, err
}

// streamOf returns the name of an account's stream.
func streamOf(account string) string { return Aggregate.Category + "-" + account }

// These errors mean that the referential or site that a command names does not exist. Archived referentials and inactive sites exist. Both errors
// are refusal.NotFound for the client.
var (
	ErrUnknownReferential = fmt.Errorf("unknown referential: %w", refusal.NotFound)
	ErrUnknownSite        = fmt.Errorf("unknown site: %w", refusal.NotFound)
)

// ErrDuplicateExternalID: a batch has an external id in two rows.
var ErrDuplicateExternalID = errors.New("external id is given twice")
