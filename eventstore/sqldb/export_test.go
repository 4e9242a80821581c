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
