package service

import (
	"net"
	"net/netip"
	"net/url"
	"testing"
)

func TestLinksOfAnAreaForOtherMachinesNeedItsURL(t *testing.T) {
	t.Parallel()
	set := &url.URL{Scheme: "https", Host: "espace.exemple.fr"}
	for listening, isUnusable := range map[string]bool{"127.0.0.1:8081": false, "[::1]:8081": false, "0.0.0.0:8081": true, "[::]:8081": true, "10.0.0.11:8081": true} {
		addr := net.TCPAddrFromAddrPort(netip.MustParseAddrPort(listening))
		if got := hasUnusableLinks(addr, nil); got != isUnusable {
			t.Errorf("%s without a URL: %t, want %t", listening, got, isUnusable)
		}
		if hasUnusableLinks(addr, set) {
			t.Errorf("%s with a URL", listening)
		}
	}
}
