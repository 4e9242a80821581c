// Package hostcheck refuses requests whose Host header names another server. A page on the web may give its own domain the address of a
// private listener (DNS rebinding), and its visitor's browser then lets it read what that listener answers; but the browser
// says in Host which name the page used.
//
// ParseNames reads a setting, New joins names into a Checker, and Checker.Handler wraps the handler of a listener.
package hostcheck

import (
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync"

	"lieudit/http/kit"
	"lieudit/schemas/refusal"
)

// Checker knows the names by which a listener may be addressed. Ports are not compared: a proxy or a container may map them, and a page
// cannot choose the name of another server by its port.
type Checker struct {
	names map[string]bool
	log   *slog.Logger
	hint  string // tells in the log how to allow a name

	mu       sync.Mutex
	reported map[string]bool // names in the log already, at most maxReported
}

// maxReported bounds the names that are logged: strangers choose them.
const maxReported = 16

// New returns a Checker that allows localhost and some names. An entry of names may be empty, have a port, or be an address; these are
// how settings hold them. The hint ends the log line of a refused name.
func New(log *slog.Logger, hint string, names ...string) *Checker {
	c := &Checker{names: map[string]bool{"localhost": true}, log: log, hint: hint, reported: map[string]bool{}}
	for _, n := range names {
		if n = normalize(n); n != "" {
			c.names[n] = true
		}
	}
	return c
}

// ParseNames reads names that commas separate. It fails for an entry that no Host header could be equal to.
func ParseNames(text string) (names []string, err error) {
	for entry := range strings.SplitSeq(text, ",") {
		if entry = strings.TrimSpace(entry); entry == "" {
			continue
		}
		if strings.ContainsAny(entry, "/*@ ") {
			return nil, fmt.Errorf("%q is not a host name", entry)
		}
		names = append(names, entry)
	}
	return names, nil
}

// Handler passes on the requests that may be answered, and answers the others with 421. Each refused name is logged once.
func (c *Checker) Handler(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if c.isAllowed(r.Host) {
			next.ServeHTTP(w, r)
			return
		}
		c.report(r.Host)
		kit.WriteError(w, c.log, refusal.Misdirected)
	})
}

// isAllowed reports whether a Host header may be answered: one of the names, any IP address, or none at all.
//
// Nobody can give an address to another machine by a name service, so a Host that is an address was not rebound: probes and scrapers use
// them. Every browser sends a Host, but health checks that speak HTTP/1.0 do not.
func (c *Checker) isAllowed(host string) bool {
	name := normalize(host)
	if name == "" {
		return host == ""
	}
	_, err := netip.ParseAddr(name)
	return err == nil || c.names[name]
}

// normalize returns the name or the address in a Host header or a listener's address: in lower case, without the port, the brackets of
// an IPv6 address and the dot that ends a full name.
func normalize(host string) string {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	} else {
		host = strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
	}
	return strings.TrimSuffix(strings.ToLower(host), ".")
}

// report logs a refused name, unless it was logged before or too many were.
func (c *Checker) report(host string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.reported[host] || len(c.reported) == maxReported {
		return
	}
	c.reported[host] = true
	c.log.Warn("a request for another host was refused", "host", host, "hint", c.hint)
}
