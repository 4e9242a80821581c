package service

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
)

const (
	// opsConnections is the cap of the ops listener: probes, a scraper and people.
	opsConnections = 64
	// minConnections is the least that a listener can do with.
	minConnections = 8
	// minReserve and maxReserve bound the file descriptors that are kept back for what is opened later: the log's next
	// segments (two each), databases, vintages, connections to servers.
	minReserve, maxReserve = 96, 1024
)

// connections is how many connections each listener takes.
type connections struct{ api, area, ops int }

// shareConnections lowers the caps of the listeners to what the file descriptors of the process allow.
func (s *service) shareConnections() (connections, error) {
	wanted := cmp.Or(s.Connections, DefaultConnections)
	limit, known := maxDescriptors()
	if !known {
		return connections{wanted, wanted, opsConnections}, nil
	}
	room, err := share(wanted, limit, openDescriptors())
	if err == nil && room.api < wanted {
		s.Log.Warn("fewer connections than asked for: file descriptors are few", "descriptors", limit, "connections", room.api)
	}
	return room, err
}

// openDescriptors is how many file descriptors the process has open, the log and the databases among them, where that
// can be known.
func openDescriptors() int {
	open, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return minReserve
	}
	return len(open)
}

// share is what a number of file descriptors allows of the connections wanted, beside those that are open and those that
// are kept back. The ops listener comes first, so that probes are answered; the API and the customer area get the same.
func share(wanted, descriptors, open int) (connections, error) {
	left := descriptors - open - min(max(descriptors/4, minReserve), maxReserve)
	ops := min(opsConnections, left/8)
	each := min(wanted, (left-ops)/2)
	if min(ops, each) < minConnections {
		return connections{}, fmt.Errorf("%d file descriptors are too few: at least %d are needed (ulimit -n)",
			descriptors, open+max(descriptors/4, minReserve)+8*minConnections)
	}
	return connections{each, each, ops}, nil
}

// haveRoom is nil, or says which listeners are full of connections that are all at work.
func (s *service) haveRoom(context.Context) error {
	var full []error
	for _, l := range []*listener{s.api, s.area} {
		if st := l.socket.Status(); st.Full {
			full = append(full, fmt.Errorf("%s: all %d connections are at work", l.name, st.Limit))
		}
	}
	return errors.Join(full...)
}
