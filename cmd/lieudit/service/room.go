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
	// minDescriptorReserve and maxDescriptorReserve bound the file descriptors that are kept back for what is opened later: the log's next
	// segments (two each), databases, vintages, connections to servers.
	minDescriptorReserve, maxDescriptorReserve = 96, 1024
)

// connectionLimits is how many connectionLimits each listener takes.
type connectionLimits struct{ api, area, ops int }

// limitConnections lowers the caps of the listeners to what the file descriptors of the process allow.
func (s *service) limitConnections() (connectionLimits, error) {
	wanted := cmp.Or(s.MaxConnections, DefaultMaxConnections)
	descriptors, known := maxDescriptors()
	if !known {
		return connectionLimits{wanted, wanted, opsConnections}, nil
	}
	limits, err := divideDescriptors(wanted, descriptors, countOpenDescriptors())
	if err == nil && limits.api < wanted {
		s.Log.Warn("fewer connections than asked for: file descriptors are few", "descriptors", descriptors, "connections", limits.api)
	}
	return limits, err
}

// countOpenDescriptors is how many file descriptors the process has open, the log and the databases among them, where that
// can be known.
func countOpenDescriptors() int {
	open, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return minDescriptorReserve
	}
	return len(open)
}

// divideDescriptors is what a number of file descriptors allows of the connections wanted, beside those that are open and those that
// are kept back. The ops listener comes first, so that probes are answered; the API and the customer area get the same.
func divideDescriptors(wanted, descriptors, open int) (connectionLimits, error) {
	left := descriptors - open - min(max(descriptors/4, minDescriptorReserve), maxDescriptorReserve)
	ops := min(opsConnections, left/8)
	each := min(wanted, (left-ops)/2)
	if min(ops, each) < minConnections {
		return connectionLimits{}, fmt.Errorf("%d file descriptors are too few: at least %d are needed (ulimit -n)",
			descriptors, open+max(descriptors/4, minDescriptorReserve)+8*minConnections)
	}
	return connectionLimits{each, each, ops}, nil
}

// checkConnections is nil, or says which listeners are full of connections that are all at work.
func (s *service) checkConnections(context.Context) error {
	var full []error
	for _, l := range []*listener{s.api, s.area} {
		if st := l.socket.Status(); st.Full {
			full = append(full, fmt.Errorf("%s: all %d connections are at work", l.name, st.Limit))
		}
	}
	return errors.Join(full...)
}
