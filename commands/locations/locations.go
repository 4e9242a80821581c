package locations

import (
	"context"
	"log/slog"
	"time"

	"lieudit/commands"
	"lieudit/eventstore"
	"lieudit/schemas/locations"
	"lieudit/schemas/plan"
)

// Plans says what limits an account now.
type Plans interface {
	PlanOf(ctx context.Context, account string) (plan.Plan, error)
}

// Geocoder looks a site's address up. A content that names none, or none that is found, has no position; so has any when
// the context ends. An error says that it could not be looked up, and the write fails: stored without a position, the
// site would stay without. It is safe for concurrent use.
type Geocoder interface {
	Geocode(ctx context.Context, c locations.Content) (locations.Position, bool, error)
}

// Locations takes the commands on places. Each command returns the position to wait for before its effect shows in a
// read model. It is safe for concurrent use.
type Locations struct {
	handler  *commands.Handler[State]
	store    eventstore.Store
	codec    *eventstore.Codec
	plans    Plans
	geocoder Geocoder
	now      func() time.Time
}

// New takes commands on the places of a log.
func New(store eventstore.Store, codec *eventstore.Codec, plans Plans, geocoder Geocoder, now func() time.Time) *Locations {
	return &Locations{commands.NewHandler(Aggregate, store, codec), store, codec, plans, geocoder, now}
}

// KeepSnapshots has states kept in files of a folder, which is this instance's, so that accounts with a long history are quickly at
// hand after a restart. The files can be thrown away at any time. It is called before any command.
func (l *Locations) KeepSnapshots(folder string, log *slog.Logger) {
	l.handler.KeepSnapshots(folder, log)
}

// Counts are how many active sites and referentials an account has, by all that is on the log.
type Counts struct{ Sites, Referentials int }

// CountLocations counts an account's places.
func (l *Locations) CountLocations(ctx context.Context, account string) (Counts, error) {
	var f Counts
	err := l.handler.View(ctx, account, func(s *State) { f = Counts{s.activeSites, s.openReferentials} })
	return f, err
}

// streamOf is where an account's places are decided.
func streamOf(account string) string { return Aggregate.Category + "-" + account }
