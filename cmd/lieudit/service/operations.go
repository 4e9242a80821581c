package service

import (
	"context"
	"fmt"

	"lieudit/cmd/lieudit/ops"
)

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

// isReady says what /readyz answers now.
func (s *service) isReady(ctx context.Context) bool { return ops.Check(ctx, s.components()).Ready }

// checkStarted returns nil once the socket of the API is open and the read models have caught up for the first time.
func (s *service) checkStarted(ctx context.Context) error {
	if !s.api.isOpen() {
		if err := s.peers.CheckJoined(); err != nil && s.peers.HasSeenLog() {
			return fmt.Errorf("the API is not open yet: %w", err)
		}
		return errAPINotOpen
	}
	return s.instance.CheckCaughtUp(ctx)
}
