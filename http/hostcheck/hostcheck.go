// Package hostcheck refuses requests whose Host header names another server. The owner of a web page can let the page's own domain
// resolve to the address of a private listener (DNS rebinding). A visitor's browser then lets the page read the listener's answers, but
// it still sends the domain of the page as Host.
//
// ParseNames reads a setting, New makes a Checker of the allowed names, and Checker.Handler wraps the handler of a listener.
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

// Checker knows the names by which a listener may be addressed. Ports are not compared: a proxy or a container may map them, and another
// port does not make the name of a page an allowed one.
type Checker struct {
	names map[string]bool
	log   *slog.Logger
	hint  string // logged with a refused name: how to allow it

	mu     sync.Mutex
	logged map[string]bool // names that were logged, at most maxLogged
}

// maxLogged limits how many names are logged, since clients choose them.
const maxLogged = 16

// New returns a Checker that allows localhost and names. As names come from settings, each may be empty, have a port, or be an address.
// The hint is logged with a refused name.
func New(log *slog.Logger, hint string, names ...string) *Checker {
	c := &Checker{names: map[string]bool{"localhost": true}, log: log, hint: hint, logged: map[string]bool{}}
	for _, n := range names {
		if n = normalize(n); n != "" {
			c.names[n] = true
		}
	}
	return c
}

// ParseNames splits a comma-separated list of names. It fails if an entry cannot be a host name.
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

// Handler passes the requests with an allowed Host on to next, and answers the others with 421. Each refused name is logged once.
func (c *Checker) Handler(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if c.isAllowed(r.Host) {
			next.ServeHTTP(w, r)
			return
		}
		c.logRefusal(r.Host)
		kit.WriteError(w, c.log, refusal.Misdirected)
	})
}

// isAllowed reports whether a request with this Host header is answered: one of the names, any IP address, or no header at all.
//
// DNS rebinding needs a name, so a page never causes a Host that is an address; probes and scrapers do send one. Every browser sends a
// Host, but health checks over HTTP/1.0 do not.
func (c *Checker) isAllowed(host string) bool {
	name := normalize(host)
	if name == "" {
		return host == ""
	}
	_, err := netip.ParseAddr(name)
	return err == nil || c.names[name]
}

// normalize returns the name or the IP address in a Host header or a listener's address: in lower case, without the port, the brackets
// of an IPv6 address and the trailing dot of a fully qualified name.
func normalize(host string) string {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	} else {
		host = strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
	}
	return strings.TrimSuffix(strings.ToLower(host), ".")
}

// logRefusal logs a refused name, unless it was logged before or maxLogged names were.
func (c *Checker) logRefusal(host string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.logged[host] || len(c.logged) == maxLogged {
		return
	}
	c.logged[host] = true
	c.log.Warn("a request for another host was refused", "host", host, "hint", c.hint)
}
