package customerarea

import (
	"lieudit/http/kit"
	"lieudit/schemas/grant"
)

// takeTurns makes a list wait for its turn before each chunk of it: a page of a thousand entries takes a processor a hundred times as
// long as the check of an address. The tokens of an account share its part; one of no account has its own.
func takeTurns[T any](h *handler, p grant.TokenGrant, read kit.ListReader[T]) kit.ListReader[T] {
	name := p.Account
	if name == "" {
		name = "token " + p.TokenID // no account has this id: ids have no spaces
	}
	return kit.TakeTurns(h.Lists, name, read)
}
