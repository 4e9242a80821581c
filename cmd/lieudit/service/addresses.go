package service

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/google/uuid"

	"lieudit/cmd/lieudit/vintages"
	"lieudit/eventstore/dirlock"
	"lieudit/queries/address"
	"lieudit/queries/address/atlas"
	"lieudit/queries/address/ban"
	"lieudit/queries/address/commune"
	"lieudit/queries/address/directory"
	"lieudit/queries/address/specimen"
	"lieudit/queries/address/vintage"
	"lieudit/queries/locations/meili"
)

// DemoVintage is the invented vintage that a service begins with where it has no other.
func DemoVintage() specimen.Order { return specimen.Order{Addresses: 20_000, Seed: 2026} }

// openAddresses serves the current vintage. One that cannot be served is told and leaves the rest of the service be;
// invented addresses are made only where there never were real ones.
func (s *service) openAddresses(ctx context.Context) error {
	communes, err := commune.Load()
	if err != nil {
		return err
	}
	s.atlas = atlas.New(communes)
	if err := s.openAddressIndex(); err != nil {
		return err
	}
	folder := vintages.FolderIn(s.Data)
	if err := folder.RemoveLeftovers(s.Now()); err != nil {
		s.Log.Warn("leavings of imports stay", "reason", err)
	}
	current, err := folder.Current()
	if err == nil && current == "" && s.Demo && folder.LastRealVintage() == "" {
		if err := s.addDemoVintage(ctx, folder, communes); err != nil {
			return fmt.Errorf("demo vintage: %w", err)
		}
	}
	s.onClose(func() error {
		s.atlas.Swap(nil)
		return nil
	})
	s.vintageWatcher = vintages.NewWatcher(folder, s.Log, s.serveVintage, s.atlas.Withdraw)
	s.vintageWatcher.Load(ctx)
	return nil
}

// addDemoVintage makes a small vintage of invented addresses, unless an import is at work on a real one.
func (s *service) addDemoVintage(ctx context.Context, folder vintages.Folder, communes *commune.Table) error {
	_, _, err := folder.Add(ctx, s.Now(), func(path, _ string) (vintage.Summary, error) {
		r, w := io.Pipe()
		written := make(chan error, 1)
		go func() {
			err := specimen.Write(ctx, w, communes, DemoVintage())
			written <- err
			w.CloseWithError(err)
		}()
		sum, err := vintage.Build(ctx, path, ban.Read(r, "demo", &ban.Report{}),
			vintage.Options{Millesime: vintages.DemoMillesime, Synthetic: true})
		r.CloseWithError(io.ErrClosedPipe) // ends a writer nobody reads
		return sum, errors.Join(err, <-written)
	})
	if _, held := errors.AsType[*dirlock.HeldError](err); held {
		return nil
	}
	return err
}

// checkAddresses is nil while the current vintage is served and whole.
func (s *service) checkAddresses(context.Context) error {
	if err := s.vintageWatcher.Problem(); err != nil {
		return err
	}
	_, err := atlas.Ask(s.atlas, func(*atlas.Edition) (struct{}, error) { return struct{}{}, nil })
	if _, withdrawn := errors.AsType[*atlas.WithdrawnError](err); err != nil && !withdrawn {
		return fmt.Errorf("%w: lieudit ban import FILE", err)
	}
	return err
}

// describeVintage is what is served, for people.
func (s *service) describeVintage() string {
	e, ok := s.atlas.Use()
	if !ok {
		if err := s.vintageWatcher.Problem(); err != nil {
			return "NONE IS SERVED: " + err.Error()
		}
		return "none yet: lieudit ban import FILE"
	}
	defer e.Done()
	if e.Meta.Synthetic {
		return fmt.Sprintf("%d SYNTHETIC addresses: the streets are invented; lieudit ban import FILE loads real ones", e.Meta.Addresses)
	}
	return fmt.Sprintf("%d, millésime %s", e.Meta.Addresses, e.Meta.Millesime)
}

// Where the candidates of addresses come from.
const (
	OwnIndex         = "own"
	MeilisearchIndex = "meilisearch"
)

const indexCheckInterval = 15 * time.Second // how often it is looked whether the served vintage is still listed

// openAddressIndex has addresses searched in Meilisearch when that is asked for. It need not be there yet.
func (s *service) openAddressIndex() error {
	if s.AddressIndex != MeilisearchIndex {
		return nil
	}
	server, err := meili.ParseServer(s.Meilisearch)
	if err != nil {
		return fmt.Errorf("address index: %w", err)
	}
	s.addressIndex = directory.New(server.Client(), uuid.NewString(), s.Now)
	s.atlas.Source = func(v *vintage.Vintage) address.Source { return s.addressIndex.Of(v) }
	return nil
}

// serveVintage serves a vintage from now on. Once questions are taken it is listed first, so that none goes without an answer
// meanwhile; where that cannot be done it is served all the same, for what is asked by id.
func (s *service) serveVintage(ctx context.Context, v *vintage.Vintage) {
	if s.addressIndex == nil || s.api == nil {
		s.atlas.Swap(v)
		return
	}
	if err := s.indexVintage(ctx, v); err != nil {
		s.Log.Warn("vintage served before it is listed", "reason", err)
	}
	old := s.servedDigest()
	s.atlas.Swap(v)
	if old == "" || old == v.Digest() {
		return
	}
	if err := s.addressIndex.Release(ctx, old); err != nil { // removed by keepListed once no question is under way there
		s.Log.Warn("list of the vintage before stays for now", "reason", err)
	}
}

// indexVintage lists a vintage unless it is, and says so: one of all France takes minutes.
func (s *service) indexVintage(ctx context.Context, v *vintage.Vintage) error {
	startedAt, hasStarted := time.Now(), false
	err := v.Guard(func() error {
		return s.addressIndex.Fill(ctx, v, func(_, total int) {
			if !hasStarted {
				s.Log.Info("vintage is being listed in Meilisearch", "millesime", v.Millesime, "documents", total)
			}
			hasStarted = true
		})
	})
	if hasStarted && err == nil {
		s.Log.Info("vintage is listed in Meilisearch", "millesime", v.Millesime, "took", time.Since(startedAt).Round(time.Millisecond))
	}
	return err
}

// servedDigest is the digest of the servedDigest vintage, empty when there is none.
func (s *service) servedDigest() string {
	e, ok := s.atlas.Use()
	if !ok {
		return ""
	}
	defer e.Done()
	return e.Vintage().Digest()
}

// keepVintageIndexed sees to it that the served vintage is listed, for as long as ctx goes on.
func (s *service) keepVintageIndexed(ctx context.Context) error {
	for reported := ""; ; {
		problem := ""
		if err := s.indexServedVintage(ctx); err != nil && ctx.Err() == nil {
			problem = err.Error()
		}
		if problem != reported && problem != "" { // one line an incident
			s.Log.Error("the served vintage is not listed: searches of addresses fail", "reason", problem)
		}
		if problem == "" && reported != "" {
			s.Log.Info("the served vintage is listed again")
		}
		reported = problem
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(indexCheckInterval):
		}
	}
}

// indexServedVintage lists the served vintage unless it is, and removes lists that nobody uses.
func (s *service) indexServedVintage(ctx context.Context) error {
	e, ok := s.atlas.Use()
	if !ok {
		return nil
	}
	defer e.Done()
	return errors.Join(s.indexVintage(ctx, e.Vintage()), s.addressIndex.Prune(ctx))
}

// checkAddressIndex is nil while searches of addresses can be answered.
func (s *service) checkAddressIndex(ctx context.Context) error {
	e, ok := s.atlas.Use()
	if !ok {
		return nil
	}
	defer e.Done()
	return s.addressIndex.Ready(ctx, e.Vintage())
}
