package service

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"

	"lieudit/queries/address"
	"lieudit/queries/address/directory"
	"lieudit/queries/address/vintage"
	"lieudit/queries/places/meili"
)

// Where the candidates of addresses come from.
const (
	OwnIndex    = "own"
	Meilisearch = "meilisearch"
)

const relist = 15 * time.Second // how often it is looked whether the served vintage is still listed

// openListings has addresses searched in Meilisearch when that is asked for. It need not be there yet.
func (s *service) openListings() error {
	if s.AddressIndex != Meilisearch {
		return nil
	}
	server, err := meili.Parse(s.Meilisearch)
	if err != nil {
		return fmt.Errorf("address index: %w", err)
	}
	s.listings = directory.New(server.Client(), uuid.NewString(), s.Now)
	s.atlas.Source = func(v *vintage.Vintage) address.Source { return s.listings.Of(v) }
	return nil
}

// swap serves a vintage from now on. Once questions are taken it is listed first, so that none goes without an answer
// meanwhile; where that cannot be done it is served all the same, for what is asked by id.
func (s *service) swap(ctx context.Context, v *vintage.Vintage) {
	if s.listings == nil || s.api == nil {
		s.atlas.Swap(v)
		return
	}
	if err := s.fill(ctx, v); err != nil {
		s.Log.Warn("vintage served before it is listed", "reason", err)
	}
	old := s.served()
	s.atlas.Swap(v)
	if old == "" || old == v.Digest() {
		return
	}
	if err := s.listings.Release(ctx, old); err != nil { // removed by keepListed once no question is under way there
		s.Log.Warn("list of the vintage before stays for now", "reason", err)
	}
}

// fill lists a vintage unless it is, and says so: one of all France takes minutes.
func (s *service) fill(ctx context.Context, v *vintage.Vintage) error {
	began, begun := time.Now(), false
	err := v.Guard(func() error {
		return s.listings.Fill(ctx, v, func(_, total int) {
			if !begun {
				s.Log.Info("vintage is being listed in Meilisearch", "millesime", v.Millesime, "documents", total)
			}
			begun = true
		})
	})
	if begun && err == nil {
		s.Log.Info("vintage is listed in Meilisearch", "millesime", v.Millesime, "took", time.Since(began).Round(time.Millisecond))
	}
	return err
}

// served is the digest of the served vintage, empty when there is none.
func (s *service) served() string {
	e, ok := s.atlas.Use()
	if !ok {
		return ""
	}
	defer e.Done()
	return e.Vintage().Digest()
}

// keepListed sees to it that the served vintage is listed, for as long as ctx goes on.
func (s *service) keepListed(ctx context.Context) error {
	for told := ""; ; {
		now := ""
		if err := s.list(ctx); err != nil && ctx.Err() == nil {
			now = err.Error()
		}
		if now != told && now != "" { // one line an incident
			s.Log.Error("the served vintage is not listed: searches of addresses fail", "reason", now)
		}
		if now == "" && told != "" {
			s.Log.Info("the served vintage is listed again")
		}
		told = now
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(relist):
		}
	}
}

// list lists the served vintage unless it is, and removes lists that nobody uses.
func (s *service) list(ctx context.Context) error {
	e, ok := s.atlas.Use()
	if !ok {
		return nil
	}
	defer e.Done()
	return errors.Join(s.fill(ctx, e.Vintage()), s.listings.Prune(ctx))
}

// listed is nil while searches of addresses can be answered.
func (s *service) listed(ctx context.Context) error {
	e, ok := s.atlas.Use()
	if !ok {
		return nil
	}
	defer e.Done()
	return s.listings.Ready(ctx, e.Vintage())
}
