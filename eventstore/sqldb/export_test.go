package sqldb

import (
	"context"
	"time"
)

// RenewLeasesNow renews this instance's leases also when they were renewed a moment ago.
func (s *Registry) RenewLeasesNow(ctx context.Context) error {
	s.mu.Lock()
	s.leasesRenewedAt = time.Time{}
	s.mu.Unlock()
	return s.renewLeases(ctx)
}

// ExpectHoles sets how many bytes of holes the file of an open generation is expected to have.
func (s *Registry) ExpectHoles(name string, bytes int64) { s.listOpen()[name].file.fewest = bytes }

// HasNewHoles reports whether CheckFiles would check the structure of an open generation's file.
func (s *Registry) HasNewHoles(name string) bool { return s.listOpen()[name].file.hasNewHoles() }
