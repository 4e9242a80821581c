package usage_test

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"lieudit/schemas/grant"
)

// BenchmarkCount measures requests that 64 clients count at once, durably, on one account and spread over a thousand.
func BenchmarkCount(b *testing.B) {
	for _, accounts := range []int{1, 1000} {
		b.Run(fmt.Sprintf("accounts=%d", accounts), func(b *testing.B) {
			log := openLog(b)
			caps := map[string]int64{}
			var grants []grant.Grant
			for i := range accounts {
				id := fmt.Sprint("a", i)
				caps[id] = 1 << 50
				grants = append(grants, grantOf(id, 1<<50))
			}
			m := startMeter(b, log, log, &fakeQuotas{caps: caps}, time.Now)
			limiter := newLimiter()
			var next atomic.Int64
			var clients sync.WaitGroup
			for range 64 {
				clients.Go(func() {
					for n := next.Add(1); n <= int64(b.N); n = next.Add(1) {
						g := grants[n%int64(accounts)]
						if _, err := countRequest(b.Context(), m, limiter.NewWait(g.Account), g, "GET /me"); err != nil {
							b.Error(err)
							return
						}
					}
				})
			}
			clients.Wait()
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "requests/s")
		})
	}
}
