// Package clientip finds the address that a request comes from behind proxies. Nothing that a client sends decides the address,
// only what trusted proxies wrote about their own connections.
//
// A Finder knows the trusted proxies (ParseTrusted). FindClient begins at the connection and follows the addresses of
// X-Forwarded-For or Forwarded (header.go) backwards while they belong to trusted proxies: each proxy appends the address of its
// peer, so a trusted proxy wrote the last untrusted address, and anybody may have written those before it. Handler notices proxies
// that are in use but not trusted, and Check reports them to operators.
package clientip

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync/atomic"
)

// ParseTrusted parses a list of prefixes (CIDR) or addresses with commas between them. An empty list trusts nobody. A prefix that
// contains all addresses is refused, because every client could then choose its own address.
func ParseTrusted(list string) ([]netip.Prefix, error) {
	var trusted []netip.Prefix
	for text := range strings.SplitSeq(list, ",") {
		text = strings.TrimSpace(text)
		if text == "" {
			continue
		}
		prefix, err := parsePrefix(text)
		if err != nil {
			return nil, fmt.Errorf("%q is neither an address nor of the form 10.0.0.0/8", text)
		}
		if prefix.Bits() == 0 {
			return nil, fmt.Errorf("%s trusts everybody: name the proxies alone", text)
		}
		trusted = append(trusted, prefix)
	}
	return trusted, nil
}

// parsePrefix parses one prefix, or an address as a prefix of its full length. Bits after the prefix are dropped.
func parsePrefix(text string) (netip.Prefix, error) {
	if strings.Contains(text, "/") {
		prefix, err := netip.ParsePrefix(text)
		return prefix.Masked(), err
	}
	addr, err := netip.ParseAddr(text)
	if err != nil {
		return netip.Prefix{}, err
	}
	addr = addr.Unmap().WithZone("")
	return addr.Prefix(addr.BitLen())
}

// Finder finds the addresses of clients. It is safe for concurrent use.
type Finder struct {
	trusted []netip.Prefix
	log     *slog.Logger

	untrusted atomic.Pointer[netip.Addr] // the first proxy in use that is not trusted; nil if none was seen
}

// NewFinder returns a Finder for requests that come directly or through trusted proxies.
func NewFinder(trusted []netip.Prefix, log *slog.Logger) *Finder {
	return &Finder{trusted: trusted, log: log}
}

// FindClient returns the address of the connection, or the one that its trusted proxies report. IPv4 within IPv6 is returned as
// IPv4, and no address has a zone. If a proxy hides an address (unknown, an obfuscated name) or writes one that cannot be parsed,
// FindClient returns the address of that proxy. If both headers are present and differ, the client has sent one of them itself,
// and FindClient returns the address of the connection. The address is invalid if the connection has none.
func (f *Finder) FindClient(r *http.Request) netip.Addr {
	connection := parseNode(r.RemoteAddr)
	if !f.isTrusted(connection) {
		return connection
	}
	list, pairs := r.Header[forwardedForHeader], r.Header[forwardedHeader]
	client := f.followNodes(connection, list, listNodes)
	if pairs == nil {
		return client
	}
	if other := f.followNodes(connection, pairs, pairNodes); list == nil || other == client {
		return other
	}
	return connection
}

// followNodes follows the lines of a header backwards, from a trusted address to the last one that is not trusted. It stops at
// anything that it cannot parse.
func (f *Finder) followNodes(from netip.Addr, lines []string, nodesOf func(line string) []string) netip.Addr {
	for _, line := range slices.Backward(lines) {
		for _, node := range slices.Backward(nodesOf(line)) {
			addr := parseNode(node)
			if !addr.IsValid() {
				return from
			}
			if from = addr; !f.isTrusted(addr) {
				return from
			}
		}
	}
	return from
}

// isTrusted reports whether an address belongs to a trusted proxy.
func (f *Finder) isTrusted(addr netip.Addr) bool {
	return slices.ContainsFunc(f.trusted, func(p netip.Prefix) bool { return p.Contains(addr) })
}

// Handler passes requests on, and remembers the first one that an untrusted proxy seems to have forwarded: it comes from this
// machine or a private network and has one of the headers. From anywhere else such a header proves nothing, because any client may
// send it.
func (f *Finder) Handler(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if f.untrusted.Load() == nil && hasForwardedHeader(r.Header) {
			f.noteUntrusted(parseNode(r.RemoteAddr))
		}
		next.ServeHTTP(w, r)
	})
}

// noteUntrusted remembers the first private address that is not trusted, and logs it.
func (f *Finder) noteUntrusted(addr netip.Addr) {
	if !addr.IsLoopback() && !addr.IsPrivate() && !addr.IsLinkLocalUnicast() || f.isTrusted(addr) {
		return
	}
	if f.untrusted.CompareAndSwap(nil, &addr) {
		f.log.Warn("a proxy is not trusted: all its visitors are one client of the throttle", "proxy", addr, "flag", "--trusted-proxies")
	}
}

// Check returns an error that names the first untrusted proxy that was in use, or nil if there was none.
func (f *Finder) Check(context.Context) error {
	if addr := f.untrusted.Load(); addr != nil {
		return fmt.Errorf("requests come through %s, which --trusted-proxies does not name: all its visitors are one client of the throttle", addr)
	}
	return nil
}
