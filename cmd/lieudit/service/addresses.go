package service

import (
	"context"
	"errors"
	"fmt"
	"io"

	"lieudit/cmd/lieudit/vintages"
	"lieudit/eventstore/dirlock"
	"lieudit/queries/address/atlas"
	"lieudit/queries/address/ban"
	"lieudit/queries/address/commune"
	"lieudit/queries/address/specimen"
	"lieudit/queries/address/vintage"
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
