package locations

import (
	"context"
	"log/slog"
	"time"

	"lieudit/commands"
	"lieudit/eventstore"
	"lieudit/schemas/plan"
	"lieudit/schemas/site"
)

// Plans says what limits an account now.
type Plans interface {
	PlanOf(ctx context.Context, account string) (plan.Plan, error)
}

// Placer looks a site's address up. A content that names none, or none that is found, has no position; so has any when
// the context ends. An error says that it could not be looked up, and the write fails: stored without a position, the
// site would stay without. It is safe for concurrent use.
type Placer interface {
	Place(ctx context.Context, c site.Content) (site.Position, bool, error)
}

// Locations takes the commands on places. Each command returns the position to wait for before its effect shows in a
// read model. It is safe for concurrent use.
type Locations struct {
	desk   *commands.Desk[State]
	store  eventstore.Store
	codec  *eventstore.Codec
	plans  Plans
	placer Placer
	now    func() time.Time
}

// New takes commands on the places of a log.
func New(store eventstore.Store, codec *eventstore.Codec, plans Plans, placer Placer, now func() time.Time) *Locations {
	return &Locations{commands.NewDesk(Aggregate, store, codec), store, codec, plans, placer, now}
}

// Keep has states kept in files of a folder, which is this instance's, so that accounts with a long history are quickly at
// hand after a restart. The files can be thrown away at any time. It is called before any command.
func (l *Locations) Keep(folder string, log *slog.Logger) { l.desk.Keep(folder, log) }

// Figures are how many active sites and referentials an account has, by all that is on the log.
type Figures struct{ Sites, Referentials int }

// Figures counts an account's places.
func (l *Locations) Figures(ctx context.Context, account string) (Figures, error) {
	var f Figures
	err := l.desk.View(ctx, account, func(s *State) { f = Figures{s.active, s.open} })
	return f, err
}

// stream is where an account's places are decided.
func stream(account string) string { return Aggregate.Category + "-" + account }
