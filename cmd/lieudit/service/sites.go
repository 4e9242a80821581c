package service

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"lieudit/eventstore"
	"lieudit/projections/inventory"
	"lieudit/projections/outbox"
	"lieudit/projections/projector"
	"lieudit/queries/places/finder"
	"lieudit/queries/places/local"
	"lieudit/queries/places/meili"
	"lieudit/schemas/table"
)

// openSites has sites searched in Meilisearch where there is one. It need not be there yet.
func (s *service) openSites() error {
	if s.Meilisearch == "" {
		return nil
	}
	server, err := meili.Parse(s.Meilisearch)
	if err != nil {
		return err
	}
	s.sites = meili.New(server, s.shelf)
	s.outbox = outbox.New(siteIndex{s.sites}, s.shelf)
	s.outbox.Log = s.Log
	return nil
}

// search is the search of sites: in Meilisearch, or in memory and then no older than the last change of an account's places that
// was seen.
func (s *service) search() finder.Engine {
	if s.sites != nil {
		return s.sites
	}
	return local.New(s.shelf, func(account string) uint64 { return uint64(s.pulse.Changed(account)) }, s.Now, local.Held)
}

// models are the read models of the core log. That of places fills an outbox where somebody empties it.
func (s *service) models() []projector.Model {
	all := readModels()
	for i, m := range all {
		if m.Name == table.Places.Name && s.outbox != nil {
			all[i] = inventory.Model(true)
			all[i].Beside = s.outbox.Run
		}
	}
	return all
}

// searchable returns when the search of sites finds what the read model held at a position. That Meilisearch is away was said
// when it went.
func (s *service) searchable(ctx context.Context, at eventstore.Position) error {
	if s.outbox == nil {
		return nil
	}
	err := s.outbox.Wait(ctx, at)
	if errors.Is(err, outbox.ErrDown) {
		return nil
	}
	return err
}

// outboxGauges are how the outbox stands, whichever instance empties it.
func (s *service) outboxGauges() {
	gauge := func(name, help string, value func(outbox.State) int) {
		s.metrics.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, func() float64 {
			ctx, cancel := context.WithTimeout(context.Background(), time.Second)
			defer cancel()
			state, err := s.outbox.State(ctx)
			if err != nil {
				return math.NaN()
			}
			return float64(value(state))
		}))
	}
	gauge("lieudit_outbox_waiting", "Sites that the search is still to be told of.", func(s outbox.State) int { return s.Waiting })
	gauge("lieudit_outbox_aside", "Sites that the search refused.", func(s outbox.State) int { return s.Aside })
}

func (c Config) searchName() string {
	if c.Meilisearch == "" {
		return "in memory"
	}
	return "Meilisearch, " + withoutKey(c.Meilisearch)
}

// siteIndex is the index of sites as an outbox tells it.
type siteIndex struct{ index *meili.Index }

func (x siteIndex) Open(ctx context.Context) (outbox.Told, error) {
	told, err := x.index.Open(ctx)
	return outbox.Told(told), known(err)
}

func (x siteIndex) Tell(ctx context.Context, b outbox.Batch) error {
	return known(x.index.Tell(ctx, meili.Batch(b)))
}

func (x siteIndex) Seal(ctx context.Context, b outbox.Batch) error {
	return known(x.index.Seal(ctx, meili.Batch(b)))
}

// known is an error of the index as the outbox knows it.
func known(err error) error {
	switch {
	case errors.Is(err, meili.ErrRefused):
		return fmt.Errorf("%w: %w", outbox.ErrRefused, err)
	case errors.Is(err, meili.ErrLost):
		return fmt.Errorf("%w: %w", outbox.ErrLost, err)
	}
	return err
}
