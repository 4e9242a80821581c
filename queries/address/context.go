package address

import "strings"

// Context is department and region in one line: 48, Lozère, Occitanie.
func (r *Record) Context() string {
	if r.Department.Code == "" {
		return ""
	}
	parts := []string{r.Department.Code, r.Department.Name, r.Region.Name}
	if r.Region.Name == "" || r.Region.Name == r.Department.Name {
		parts = parts[:2]
	}
	return strings.Join(parts, ", ")
}
