package stranger

import (
	"slices"

	"lieudit/schemas/plan"
)

// allAttacks is the table of attacks. A new one is a row in one of the files, which are named after what their attacks use up:
//
//	attacks_files.go         widths and texts of CSV files, and slow queries
//	attacks_answers.go       answers that are read slowly or not at all
//	attacks_connections.go   connections without requests; half, slow and large requests; floods of keys
//	attacks_work.go          the most expensive routes and searches, and the largest bodies
func allAttacks() []attack {
	return slices.Concat(fileAttacks(), answerAttacks(), connectionAttacks(), workAttacks())
}

// The plans of the attacks: for each the cheapest one that includes what it uses up.
const (
	forAddresses = plan.Discovery
	forMany      = plan.Starter // for more requests than the highest quota of DISCOVERY
	forSites     = plan.Starter
	forTools     = plan.Growth
	forAll       = plan.Business
)
