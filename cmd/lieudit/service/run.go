package service

import (
	"context"
	"errors"
	"runtime/debug"
	"time"

	"golang.org/x/sync/errgroup"
)

// Run runs an instance until ctx ends. Then the listeners stop taking requests and those running end within
// DrainTimeout; after that the parts behind them stop, and everything is closed.
func Run(ctx context.Context, c Config) error {
	s, err := openService(ctx, c)
	if err != nil {
		return err
	}
	s.printWelcome(c.Out)
	return errors.Join(s.run(ctx), s.close())
}

func (s *service) run(ctx context.Context) error {
	s.projector.VerifyGenerations(ctx)
	backgroundCtx, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	var background errgroup.Group
	background.Go(func() error {
		s.keyRing.Run(backgroundCtx)
		return nil
	})
	background.Go(func() error {
		s.gc.run(backgroundCtx)
		return nil
	})
	background.Go(func() error { return errorUnlessCanceled(backgroundCtx, s.projector.Run(backgroundCtx)) })
	background.Go(func() error { return errorUnlessCanceled(backgroundCtx, s.changes.Run(backgroundCtx)) })
	background.Go(func() error { return errorUnlessCanceled(backgroundCtx, s.vintageWatcher.Run(backgroundCtx)) })
	background.Go(func() error { return errorUnlessCanceled(backgroundCtx, s.runLedger(backgroundCtx)) })
	background.Go(func() error { return s.closePeriods(backgroundCtx) })
	background.Go(func() error { return s.newReopener().run(backgroundCtx) })
	if s.addressIndex != nil {
		background.Go(func() error { return s.keepVintageIndexed(backgroundCtx) })
	}

	foreground, ctx := errgroup.WithContext(ctx)
	for _, l := range []*listener{s.api, s.area, s.ops} {
		foreground.Go(func() error { return l.serve(ctx, s.DrainTimeout) })
	}
	foreground.Go(func() error { return s.writeFirstStart(ctx) })
	foreground.Go(func() error { return s.vault.Run(ctx) })
	err := foreground.Wait()
	stop()
	return errors.Join(err, background.Wait())
}

// runLedger runs the ledger from what the key ring knows once it is fresh: before that no request is let in, and what
// happened by then is in what the ring lets in.
func (s *service) runLedger(ctx context.Context) error {
	for !s.keyRing.IsFresh(s.Now()) {
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(10 * time.Millisecond):
		}
	}
	return s.ledger.Run(ctx, s.logs.core, s.keyRing.Checkpoint())
}

// errorUnlessCanceled is the error of a part that was to run until its context ends.
func errorUnlessCanceled(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// writeFirstStart writes what the first start leaves on the log, as soon as the log can be written.
func (s *service) writeFirstStart(ctx context.Context) error {
	f, hasWarned := firstStart{s.Config, s.accounts, s.tokens}, false
	for pause := 100 * time.Millisecond; ; pause = min(2*pause, 5*time.Second) {
		key, err := f.writeEvents(ctx)
		if err == nil {
			if key != "" {
				s.printDemo(s.Out, key)
			}
			return nil
		}
		if ctx.Err() != nil {
			return nil
		}
		if !hasWarned { // one line an incident
			s.Log.Warn("first start's records not written yet", "reason", err)
			hasWarned = true
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(pause):
		}
	}
}

// Version is what the program was built from.
func Version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	if info.Main.Version != "" && info.Main.Version != "(devel)" {
		return info.Main.Version
	}
	for _, setting := range info.Settings {
		if setting.Key == "vcs.revision" {
			return setting.Value[:min(12, len(setting.Value))]
		}
	}
	return "devel"
}
