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
	s, err := open(ctx, c)
	if err != nil {
		return err
	}
	s.welcome(c.Out)
	return errors.Join(s.run(ctx), s.close())
}

func (s *service) run(ctx context.Context) error {
	s.projector.Verify(ctx)
	behind, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	var parts errgroup.Group
	parts.Go(func() error {
		s.ring.Run(behind)
		return nil
	})
	parts.Go(func() error {
		s.memory.run(behind)
		return nil
	})
	parts.Go(func() error { return ended(behind, s.projector.Run(behind)) })
	parts.Go(func() error { return ended(behind, s.pulse.Run(behind)) })
	parts.Go(func() error { return ended(behind, s.follower.Run(behind)) })
	parts.Go(func() error { return ended(behind, s.count(behind)) })
	parts.Go(func() error { return s.closePeriods(behind) })
	parts.Go(func() error { return s.reopener().run(behind) })
	if s.listings != nil {
		parts.Go(func() error { return s.keepListed(behind) })
	}

	front, ctx := errgroup.WithContext(ctx)
	for _, l := range []*listener{s.api, s.area, s.ops} {
		front.Go(func() error { return l.serve(ctx, s.DrainTimeout) })
	}
	front.Go(func() error { return s.begin(ctx) })
	front.Go(func() error { return s.keys.Run(ctx) })
	err := front.Wait()
	stop()
	return errors.Join(err, parts.Wait())
}

// count runs the ledger from what the key ring knows once it is fresh: before that no request is let in, and what
// happened by then is in what the ring lets in.
func (s *service) count(ctx context.Context) error {
	for !s.ring.Fresh(s.Now()) {
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(10 * time.Millisecond):
		}
	}
	return s.ledger.Run(ctx, s.logs.core, s.ring.Mark())
}

// ended is the error of a part that was to run until its context ends.
func ended(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// begin writes what the first start leaves on the log, as soon as the log can be written.
func (s *service) begin(ctx context.Context) error {
	f, told := first{s.Config, s.accounts, s.tokens}, false
	for pause := 100 * time.Millisecond; ; pause = min(2*pause, 5*time.Second) {
		key, err := f.records(ctx)
		if err == nil {
			if key != "" {
				s.showDemo(s.Out, key)
			}
			return nil
		}
		if ctx.Err() != nil {
			return nil
		}
		if !told { // one line an incident
			s.Log.Warn("first start's records not written yet", "reason", err)
			told = true
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
