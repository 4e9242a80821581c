package service

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/google/uuid"

	"lieudit/cmd/lieudit/metrics"
	"lieudit/cmd/lieudit/releases"
	"lieudit/cmd/lieudit/vintages"
	"lieudit/eventstore/clock"
	"lieudit/eventstore/disk/dirlock"
	"lieudit/queries/address"
	"lieudit/queries/address/ban"
	"lieudit/queries/address/commune"
	"lieudit/queries/address/live"
	"lieudit/queries/address/meili"
	"lieudit/queries/address/synthetic"
	"lieudit/queries/address/vintage"
	"lieudit/queries/locations/alert"
	"lieudit/schemas/meiliclient"
)

// DemoVintage defines the invented addresses of a service that never had real ones. The seed makes them the same on every
// machine, so that examples in the documentation and tests can name them.
func DemoVintage() synthetic.Options { return synthetic.Options{Addresses: 20_000, Seed: 2026} }

// openAddresses makes liveVintage, which answers address queries from one vintage at a time, and serves the current vintage. It
// also makes siteAlerts from the same table of communes.
// A vintage that cannot be served is not an error: the watcher reports it, and the rest of the service works. Invented
// addresses are made only in a folder that never held real ones.
func (s *service) openAddresses(ctx context.Context) error {
	communes, err := commune.Load()
	if err != nil {
		return err
	}
	s.liveVintage, s.siteAlerts = live.New(communes), alert.NewChecker(communes)
	if err := s.openAddressIndex(); err != nil {
		return err
	}
	folder := vintages.FolderIn(s.Data)
	if err := folder.RemoveLeftovers(s.Now()); err != nil {
		s.Log.Warn("leavings of imports stay", "reason", err) // they only cost disk space
	}
	current, err := folder.Current()
	if err == nil && current == "" && s.Demo && folder.LastReal() == "" {
		if err := s.addDemoVintage(ctx, folder, communes); err != nil {
			return fmt.Errorf("demo vintage: %w", err)
		}
	}
	s.onClose(func() error {
		s.liveVintage.Swap(nil) // unmaps the vintage once the last query on it has ended
		return nil
	})
	s.vintageWatcher = releases.NewWatcher(folder, s.Log, s.serveVintage, s.liveVintage.Withdraw)
	s.vintageWatcher.Load(ctx)
	return nil
}

// addDemoVintage builds a small vintage of invented addresses through the same reader as an import. While an import holds
// the folder it does nothing: the import brings a vintage. One goroutine writes the rows into a pipe from which the build
// reads; it has ended when the function returns.
func (s *service) addDemoVintage(ctx context.Context, folder vintages.Folder, communes *commune.Table) error {
	_, err := folder.Add(ctx, s.Now(), func(path, _ string) (releases.Label, error) {
		r, w := io.Pipe()
		written := make(chan error, 1)
		go func() {
			err := synthetic.Write(ctx, w, communes, DemoVintage())
			written <- err // has room for it, so the goroutine never waits for the build to end
			w.CloseWithError(err)
		}()
		sum, err := vintage.Build(ctx, path, ban.Read(r, "demo", &ban.Report{}),
			vintage.Options{Millesime: vintages.DemoMillesime, Synthetic: true})
		r.CloseWithError(io.ErrClosedPipe) // ends the writer when the build stopped early
		return vintages.LabelOf(sum.Meta), errors.Join(err, <-written)
	})
	if _, held := errors.AsType[*dirlock.HeldError](err); held {
		return nil
	}
	return err
}

// checkAddresses returns nil while the current vintage is served and undamaged. Otherwise its error says how to repair it.
func (s *service) checkAddresses(context.Context) error {
	if err := s.vintageWatcher.Problem(); err != nil {
		return err
	}
	// An empty query fails as every query would: no vintage is served, or it was withdrawn.
	_, err := live.Query(s.liveVintage, func(*live.Engine) (struct{}, error) { return struct{}{}, nil })
	if _, withdrawn := errors.AsType[*live.WithdrawnError](err); err != nil && !withdrawn {
		return fmt.Errorf("%w: lieudit ban import FILE", err)
	}
	return err
}

// describeVintage returns, for the text at start, which addresses are served.
func (s *service) describeVintage() string {
	e, ok := s.liveVintage.Acquire()
	if !ok {
		if err := s.vintageWatcher.Problem(); err != nil {
			return "NONE IS SERVED: " + err.Error()
		}
		return "none yet: lieudit ban import FILE"
	}
	defer e.Release()
	if e.Meta.Synthetic {
		return fmt.Sprintf("%d SYNTHETIC addresses: the streets are invented; lieudit ban import FILE loads real ones", e.Meta.Addresses)
	}
	return fmt.Sprintf("%d, millésime %s", e.Meta.Addresses, e.Meta.Millesime)
}

// Sources of address candidates, as --address-index names them. A candidate is an address that may match a query; scoring
// the candidates is the same for both sources.
const (
	OwnIndex         = "own"         // the index within the vintage's file
	MeilisearchIndex = "meilisearch" // an index of the same vintage in Meilisearch
)

// indexCheckInterval is the pause between two checks that the served vintage is still in Meilisearch.
const indexCheckInterval = 15 * time.Second

// openAddressIndex makes Meilisearch the source of candidates if the config asks for it. It does not connect: the server
// may still be down.
func (s *service) openAddressIndex() error {
	if s.AddressIndex != MeilisearchIndex {
		return nil
	}
	server, err := meiliclient.ParseServer(s.Meilisearch)
	if err != nil {
		return fmt.Errorf("address index: %w", err)
	}
	server.Transport = s.calls.NewMeilisearchTransport()
	s.addressIndex = meili.New(server.Client(), uuid.NewString(), time.Now, s.Now)
	s.liveVintage.NewSource = func(v *vintage.Vintage) address.Source { return s.addressIndex.Index(v) }
	return nil
}

// serveVintage serves a vintage from now on, and owns it. In a running service it first fills the index in Meilisearch, so
// that no search fails meanwhile. If that fails, the vintage is still served: queries by id need no index. At
// start (s.api is nil) it does not wait for Meilisearch; keepVintageIndexed fills the index later.
func (s *service) serveVintage(ctx context.Context, v *vintage.Vintage) {
	defer s.withdrawDemoNetwork()
	if s.addressIndex == nil || s.api == nil {
		s.liveVintage.Swap(v)
		return
	}
	if err := s.indexVintage(ctx, v); err != nil {
		s.Log.Warn("vintage served before it is listed", "reason", err)
	}
	old := s.servedDigest()
	s.liveVintage.Swap(v)
	if old == "" || old == v.Digest() {
		return
	}
	if err := s.addressIndex.Release(ctx, old); err != nil { // keepVintageIndexed removes it once no search uses it
		s.Log.Warn("list of the vintage before stays for now", "reason", err)
	}
}

// indexVintage fills Meilisearch with a vintage that is not in it yet, and logs the beginning and the end: all of France
// takes minutes. It does nothing for a vintage that is in it. Guard turns an unreadable page of the file into an error;
// otherwise it would end the process.
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

// servedDigest returns the digest of the served vintage, which names its index in Meilisearch; "" if no vintage is served.
func (s *service) servedDigest() string {
	e, ok := s.liveVintage.Acquire()
	if !ok {
		return ""
	}
	defer e.Release()
	return e.Vintage().Digest()
}

// keepVintageIndexed keeps the served vintage in Meilisearch until ctx ends. A server that was down or has lost the index
// is filled again.
func (s *service) keepVintageIndexed(ctx context.Context) error {
	for reported := ""; ; { // the problem that the log names, "" for none
		problem := ""
		if err := s.indexServedVintage(ctx); err != nil && ctx.Err() == nil {
			problem = err.Error()
		}
		if problem != reported && problem != "" { // one log line per incident
			s.Log.Error("the served vintage is not listed: searches of addresses fail", "reason", problem)
		}
		if problem == "" && reported != "" {
			s.Log.Info("the served vintage is listed again")
		}
		reported = problem
		if !clock.Sleep(ctx, indexCheckInterval) {
			return nil
		}
	}
}

// indexServedVintage fills Meilisearch with the served vintage if it is missing there, and removes the indexes of vintages
// that no instance uses.
func (s *service) indexServedVintage(ctx context.Context) error {
	e, ok := s.liveVintage.Acquire()
	if !ok {
		return nil
	}
	defer e.Release() // the vintage stays mapped until then, even if another one is served meanwhile
	return errors.Join(s.indexVintage(ctx, e.Vintage()), s.addressIndex.Prune(ctx))
}

// checkAddressIndex returns nil while Meilisearch can give candidates of the served vintage. It also returns nil if no vintage
// is served: checkAddresses reports that.
func (s *service) checkAddressIndex(ctx context.Context) error {
	e, ok := s.liveVintage.Acquire()
	if !ok {
		return nil
	}
	defer e.Release()
	return s.addressIndex.Ready(ctx, e.Vintage())
}

// registerAddressIndexMetrics registers the requests for candidates to Meilisearch.
func (s *service) registerAddressIndexMetrics() {
	if s.addressIndex == nil {
		return
	}
	metrics.Register(s.metrics, "lieudit_address_index_requests_total", func() float64 {
		requests, _ := s.addressIndex.RequestCounts()
		return float64(requests)
	})
	metrics.Register(s.metrics, "lieudit_address_index_searches_total", func() float64 {
		_, searches := s.addressIndex.RequestCounts()
		return float64(searches)
	})
}
