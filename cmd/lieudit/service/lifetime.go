package service

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"lieudit/cmd/lieudit/ops"
	"lieudit/eventstore/clock"
)

// A proxy in front of several instances sends requests to any that accepts connections. So an instance does not accept them on the API
// before it can check keys, and continues accepting them for a while after readiness has shown the proxy that it is stopping:
//
//	start ──> key ring at the log's end, last releases served ──> API's socket open ──> ctx ends ──> Drain ──> sockets closed ──> FinishTimeout ──> parts stop
//	          (KeyRingTimeout at most, a transfer as it takes)                            readiness 503, answers say "Connection: close"

var (
	errAPINotOpen = errors.New("the API is not open yet: the key ring is being read")
	errStopping   = errors.New("the instance stops, and serves until its proxy has noticed")
)

// serveAPI opens the socket of the API and serves it until ctx ends. It first waits until the key ring has reached the log's end, but
// at most for KeyRingTimeout: after that clients get a 503 that says why rather than no connection.
func (s *service) serveAPI(ctx context.Context) error {
	timeout := cmp.Or(s.KeyRingTimeout, DefaultKeyRingTimeout)
	waiting, stop := context.WithTimeout(ctx, timeout)
	defer stop()
	if err := s.instance.AwaitKeys(waiting); err != nil && ctx.Err() == nil {
		s.Log.Warn("the API is open and cannot check keys yet", "waited", timeout, "reason", err)
	}
	s.awaitJoined(ctx, waiting)
	if ctx.Err() != nil || s.isStopping.Load() {
		return nil
	}
	if err := s.api.Open(); err != nil {
		return err
	}
	s.printAPI(s.Out)
	return s.api.Serve(ctx, s.finishTimeout())
}

// drain waits until ctx ends, or serving if a part failed before that. Then it marks the instance as stopping and returns after
// Drain: in that time proxies notice, and requests that they still send are served. A part that fails ends it sooner.
func (s *service) drain(ctx, serving context.Context) {
	select {
	case <-ctx.Done():
	case <-serving.Done():
		return
	}
	s.isStopping.Store(true)
	if s.Drain > 0 {
		s.Log.Info("stopping: requests are served on until proxies have noticed", "drain", s.Drain)
		clock.Sleep(serving, s.Drain)
	}
}

// checkStopping returns an error once the instance is stopping, so that proxies send requests elsewhere.
func (s *service) checkStopping(context.Context) error {
	if s.isStopping.Load() {
		return errStopping
	}
	return nil
}

// finishTimeout is how long running requests may take to end once the sockets are closed.
func (s *service) finishTimeout() time.Duration { return cmp.Or(s.FinishTimeout, DefaultFinishTimeout) }

// components are the parts that readiness reports: those of the instance, and what this package opens for it. While a required one
// fails, /readyz answers 503.
func (s *service) components() []ops.Component {
	all := append(s.instance.Components(), []ops.Component{
		{Name: "addresses", Check: s.checkAddresses},
		{Name: "routes", Check: s.checkRoads},
		{Name: "releases", Check: s.checkReleases},
		{Name: "connections", Check: s.checkConnections},
		{Name: "start", Required: true, Check: s.checkStarted},
		{Name: "stop", Required: true, Check: s.checkStopping},
	}...)
	if s.addressIndex != nil {
		all = append(all, ops.Component{Name: "address index", Check: s.checkAddressIndex})
	}
	return all
}

// isReady reports whether /readyz would answer 200 now.
func (s *service) isReady(ctx context.Context) bool { return ops.Check(ctx, s.components()).Ready }

// checkStarted returns nil once the socket of the API is open and the read models have caught up for the first time.
func (s *service) checkStarted(ctx context.Context) error {
	if !s.api.IsOpen() {
		if err := s.peers.CheckJoined(); err != nil && s.peers.HasSeenLog() {
			return fmt.Errorf("the API is not open yet: %w", err)
		}
		return errAPINotOpen
	}
	return s.instance.CheckCaughtUp(ctx)
}
