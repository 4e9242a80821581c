package service

import (
	"context"
	"net"
	"net/netip"
	"strings"
	"time"

	"lieudit/cmd/lieudit/metrics"
	"lieudit/cmd/lieudit/networks"
	"lieudit/cmd/lieudit/peers"
	"lieudit/cmd/lieudit/vintages"
	"lieudit/commands/deployment"
	"lieudit/eventstore"
	"lieudit/eventstore/clock"
)

// openPeers makes the follower, which keeps the served data the same on all instances. It is called after openInstance, since the
// instance has the id of this process, and before the listeners serve.
func (s *service) openPeers(context.Context) error {
	s.peers = peers.New(peers.Config{
		Deployment: deployment.New(s.logs.core, eventstore.NewCodec(nil), s.version), // its events have no personal texts
		Instance:   s.registry.InstanceID, Program: s.version, URL: s.peerURL(), IsAlone: s.EventStore == "",
		Data: []peers.Data{
			{Kind: peers.VintageKind, Folder: vintages.FolderIn(s.Data), Served: s.vintageWatcher.ServedName, Problem: s.vintageWatcher.Problem, Withdraw: s.liveVintage.Withdraw},
			{Kind: peers.NetworkKind, Folder: networks.FolderIn(s.Data), Served: s.networkWatcher.ServedName, Problem: s.networkWatcher.Problem, Withdraw: s.withdrawNetwork},
		},
		Now: s.Now, Log: s.Log,
	})
	return nil
}

// peerURL returns the URL at which other instances reach this one: the setting, otherwise the address of the customer area. It is "" if
// that listens on all addresses, or if the log is embedded, since no other instance can be on it.
func (s *service) peerURL() string {
	if s.EventStore == "" {
		return ""
	}
	if s.PeerURL != "" {
		return strings.TrimSuffix(s.PeerURL, "/")
	}
	host, port, err := net.SplitHostPort(s.area.Addr().String())
	if err != nil {
		return ""
	}
	if ip, err := netip.ParseAddr(host); err == nil && ip.IsUnspecified() {
		return ""
	}
	return "http://" + net.JoinHostPort(host, port)
}

// joinPoll is how often a starting instance checks whether it serves what the others serve.
const joinPoll = 50 * time.Millisecond

// awaitJoined returns once the instance serves the last releases, or has found that it cannot. It waits for a transfer as long as that
// takes, and for a log that does not answer until waiting ends.
func (s *service) awaitJoined(ctx, waiting context.Context) {
	for s.peers.CheckJoined() != nil {
		if !s.peers.HasSeenLog() && waiting.Err() != nil || !clock.Sleep(ctx, joinPoll) {
			return
		}
	}
}

// checkReleases returns nil while the last releases are served.
func (s *service) checkReleases(context.Context) error { return s.peers.Check() }

// registerReleaseMetrics registers whether the instance serves what all instances should serve.
func (s *service) registerReleaseMetrics() {
	for _, kind := range []string{peers.VintageKind, peers.NetworkKind} {
		metrics.Register(s.metrics, "lieudit_release_served", func() float64 { return metrics.OneIf(s.peers.ServesLast(kind)) }, kind)
	}
}
