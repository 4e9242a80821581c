package stranger

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"strings"

	"lieudit/cmd/lieudit/service"
)

// connectionAttacks use up connections, send what is read before the key is known, and flood the service with keys.
func connectionAttacks() []attack {
	return []attack{
		// More than the service takes by default, so that it has to close some.
		trickleAttack("idle connections", 1, service.DefaultMaxConnections+500, func(*turn) slowSender { return slowSender{} }),
		trickleAttack("half requests", 1, 1000, func(t *turn) slowSender {
			return slowSender{prefix: bytes.TrimSuffix(t.me().encodeHead(t.address), []byte("\r\n"))}
		}),
		trickleAttack("slow headers", 1, 1000, func(t *turn) slowSender {
			return slowSender{prefix: bytes.TrimSuffix(t.me().encodeHead(t.address), []byte("\r\n")), unit: []byte("X-Slow: x\r\n")}
		}),
		trickleAttack("slow bodies", 1, 200, func(t *turn) slowSender {
			return slowSender{prefix: t.hugeUpsert().encodeHead(t.address), unit: bytes.Repeat([]byte(" "), 1<<10)}
		}),
		trickleAttack("100-continue without a body", 1, 500, func(t *turn) slowSender {
			return slowSender{prefix: t.hugeUpsert("Expect: 100-continue").encodeHead(t.address)}
		}),
		trickleAttack("unread pipelined requests", 64, 64, func(t *turn) slowSender {
			return slowSender{prefix: bytes.Repeat(t.me().encodeHead(t.address), 2000), isUnread: true}
		}),
		{"large headers", forMany, 16, func(ctx context.Context, t *turn) {
			sizes := []int{60 << 10, 1 << 20}
			t.repeat(ctx, 16, func(_ *rand.Rand, i int) request { return t.me("X-Large: " + strings.Repeat("x", sizes[i%len(sizes)])) })
		}},
		{"flood of invalid keys", forAddresses, 16, func(ctx context.Context, t *turn) {
			t.repeat(ctx, 16, func(random *rand.Rand, _ int) request {
				return request{method: "GET", path: "/me", key: makeInvalidKey(t.account.key, random)}
			})
		}},
		{"flood of a revoked key", forAddresses, 16, func(ctx context.Context, t *turn) {
			t.repeat(ctx, 16, func(*rand.Rand, int) request { return request{method: "GET", path: "/me", key: t.account.revoked} })
		}},
		{"flood of a publishable key", forSites, 16, func(ctx context.Context, t *turn) {
			t.repeat(ctx, 16, func(*rand.Rand, int) request {
				return request{method: "GET", path: "/locations/search?limit=100&q=b", key: t.account.publishable, headers: []string{"Origin: " + webOrigin}}
			})
		}},
	}
}

// trickleAttack opens connections of slow senders. The service works for at most work of them at once.
func trickleAttack(name string, work, connections int, s func(*turn) slowSender) attack {
	return attack{name, forSites, work, func(ctx context.Context, t *turn) { t.trickle(ctx, connections, s(t)) }}
}

// me returns the cheapest request.
func (t *turn) me(headers ...string) request {
	return request{method: "GET", path: "/me", key: t.account.key, headers: headers}
}

// hugeUpsert returns the head of a request with the largest body that the service takes. The body is not sent.
func (t *turn) hugeUpsert(headers ...string) request {
	return request{method: "POST", path: referentialPath + "/sites:upsert", key: t.account.key,
		headers: append(headers, "Content-Type: application/json", fmt.Sprintf("Content-Length: %d", maxBody))}
}

// makeInvalidKey returns a key of the right form that does not exist.
func makeInvalidKey(key string, random *rand.Rand) string {
	const letters = "abcdefghijkmnpqrstuvwxyz"
	var end strings.Builder
	for range 8 {
		end.WriteByte(letters[random.IntN(len(letters))])
	}
	return key[:len(key)-8] + end.String()
}
