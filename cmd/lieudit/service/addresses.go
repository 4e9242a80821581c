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
	"lieudit/eventstore/meiliclient"
	"lieudit/queries/address"
	"lieudit/queries/address/atlas"
	"lieudit/queries/address/ban"
	"lieudit/queries/address/commune"
	"lieudit/queries/address/directory"
	"lieudit/queries/address/specimen"
	"lieudit/queries/address/vintage"
)

// DemoVintage is the order for the invented vintage of a service that never had a real one.
func DemoVintage() specimen.Order { return specimen.Order{Addresses: 20_000, Seed: 2026} }

// openAddresses serves the current vintage. A vintage that cannot be served is reported by the watcher and leaves the
// rest of the service working. Invented addresses are made only in a folder that never held real ones.
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

// addDemoVintage builds a small vintage of invented addresses, unless an import holds the folder.
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
		r.CloseWithError(io.ErrClosedPipe) // ends the writer when the build stopped early
		return sum, errors.Join(err, <-written)
	})
	if _, held := errors.AsType[*dirlock.HeldError](err); held {
		return nil
	}
	return err
}

// checkAddresses is nil while the current vintage is served and undamaged.
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

// describeVintage says for people what is served.
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

// Sources of the candidates of addresses, as --address-index names them.
const (
	OwnIndex         = "own"
	MeilisearchIndex = "meilisearch"
)

// indexCheckInterval is how often the service checks that the served vintage is still in Meilisearch.
const indexCheckInterval = 15 * time.Second

// openAddressIndex makes Meilisearch the source of candidates where the config asks for it. The server may still be down.
func (s *service) openAddressIndex() error {
	if s.AddressIndex != MeilisearchIndex {
		return nil
	}
	server, err := meiliclient.ParseServer(s.Meilisearch)
	if err != nil {
		return fmt.Errorf("address index: %w", err)
	}
	s.addressIndex = directory.New(server.Client(), uuid.NewString(), s.Now)
	s.atlas.Source = func(v *vintage.Vintage) address.Source { return s.addressIndex.Of(v) }
	return nil
}

// serveVintage serves a vintage from now on, and owns it. In a running service Meilisearch gets its documents first, so
// that no search fails meanwhile. When that fails the vintage is served all the same: look-ups by id need no index.
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
	if err := s.addressIndex.Release(ctx, old); err != nil { // keepVintageIndexed removes it once no search uses it
		s.Log.Warn("list of the vintage before stays for now", "reason", err)
	}
}

// indexVintage fills Meilisearch with a vintage that is not there yet, and logs it: all of France takes minutes.
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

// servedDigest is the digest of the served vintage, "" when there is none.
func (s *service) servedDigest() string {
	e, ok := s.atlas.Use()
	if !ok {
		return ""
	}
	defer e.Done()
	return e.Vintage().Digest()
}

// keepVintageIndexed keeps the served vintage in Meilisearch until ctx ends.
func (s *service) keepVintageIndexed(ctx context.Context) error {
	for reported := ""; ; {
		problem := ""
		if err := s.indexServedVintage(ctx); err != nil && ctx.Err() == nil {
			problem = err.Error()
		}
		if problem != reported && problem != "" { // one log line an incident
			s.Log.Error("the served vintage is not listed: searches of addresses fail", "reason", problem)
		}
		if problem == "" && reported != "" {
			s.Log.Info("the served vintage is listed again")
		}
		reported = problem
		if !sleep(ctx, indexCheckInterval) {
			return nil
		}
	}
}

// indexServedVintage fills Meilisearch with the served vintage where it is missing, and removes indexes that nobody uses.
func (s *service) indexServedVintage(ctx context.Context) error {
	e, ok := s.atlas.Use()
	if !ok {
		return nil
	}
	defer e.Done()
	return errors.Join(s.indexVintage(ctx, e.Vintage()), s.addressIndex.Prune(ctx))
}

// checkAddressIndex is nil while Meilisearch can give candidates of the served vintage.
func (s *service) checkAddressIndex(ctx context.Context) error {
	e, ok := s.atlas.Use()
	if !ok {
		return nil
	}
	defer e.Done()
	return s.addressIndex.Ready(ctx, e.Vintage())
}
