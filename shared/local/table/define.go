package table

import "slices"

// newTable checks a definition and makes the table that it asks for.
func newTable(q *tableDefinition) (*table, error) {
	if err := checkName("TableName", q.TableName); err != nil {
		return nil, err
	}
	if err := q.checkBilling(); err != nil {
		return nil, err
	}
	if q.StreamSpecification != nil && q.StreamSpecification.StreamEnabled {
		return nil, invalid("this stand-in has no streams; leave StreamSpecification out")
	}
	kinds, err := q.attributeKinds()
	if err != nil {
		return nil, err
	}
	used := make(map[string]bool)
	t := &table{definition: *q, name: q.TableName, held: make(map[string]bool)}
	if t.keys, err = keysOf(q.KeySchema, kinds, used); err != nil {
		return nil, err
	}
	names := make(map[string]bool)
	for _, d := range q.GlobalSecondaryIndexes {
		i, err := newIndex(&d, t.keys, kinds, used)
		if err != nil {
			return nil, err
		}
		if names[i.name] {
			return nil, invalid("One or more parameter values were invalid: Duplicate index name: %s", i.name)
		}
		names[i.name] = true
		t.indexes = append(t.indexes, i)
	}
	if len(t.indexes) > 20 {
		return nil, invalid("One or more parameter values were invalid: " +
			"GlobalSecondaryIndex count exceeds the per-table limit of 20")
	}
	if len(used) != len(kinds) {
		return nil, invalid("One or more parameter values were invalid: Number of attributes in KeySchema does not exactly " +
			"match number of attributes defined in AttributeDefinitions")
	}
	return t, nil
}

func (q *tableDefinition) checkBilling() error {
	if err := enum("billingMode", q.BillingMode, "PROVISIONED", "PAY_PER_REQUEST"); err != nil {
		return err
	}
	if err := enum("tableClass", q.TableClass, "STANDARD", "STANDARD_INFREQUENT_ACCESS"); err != nil {
		return err
	}
	perRequest := q.BillingMode == "PAY_PER_REQUEST"
	wishes := []*throughput{q.ProvisionedThroughput}
	for _, i := range q.GlobalSecondaryIndexes {
		wishes = append(wishes, i.ProvisionedThroughput)
	}
	for _, t := range wishes {
		switch {
		case perRequest && t != nil:
			return invalid("One or more parameter values were invalid: " +
				"Neither ReadCapacityUnits nor WriteCapacityUnits can be specified when BillingMode is PAY_PER_REQUEST")
		case !perRequest && t == nil:
			return invalid("One or more parameter values were invalid: ReadCapacityUnits and WriteCapacityUnits must both be " +
				"specified when BillingMode is PROVISIONED")
		case t != nil && (t.ReadCapacityUnits < 1 || t.WriteCapacityUnits < 1):
			return invalid("1 validation error detected: Value at 'provisionedThroughput' failed to satisfy constraint: " +
				"Member must have value greater than or equal to 1")
		}
	}
	return nil
}

func (q *tableDefinition) attributeKinds() (map[string]kind, error) {
	kinds := make(map[string]kind)
	for _, a := range q.AttributeDefinitions {
		k, known := kindOf(a.AttributeType)
		switch {
		case !known || !k.ordered():
			return nil, enum("attributeDefinitions.member.attributeType", a.AttributeType+" ", "B", "N", "S")
		case a.AttributeName == "" || len(a.AttributeName) > 255:
			return nil, invalid("1 validation error detected: Value at 'attributeDefinitions.member.attributeName' failed to " +
				"satisfy constraint: Member must have length from 1 to 255")
		case kinds[a.AttributeName] != 0:
			return nil, invalid("One or more parameter values were invalid: Duplicate AttributeName in AttributeDefinitions: %s",
				a.AttributeName)
		}
		kinds[a.AttributeName] = k
	}
	return kinds, nil
}

// keysOf reads a key schema: a HASH, then perhaps a RANGE. It notes in used which attributes it names.
func keysOf(schema []keyElement, kinds map[string]kind, used map[string]bool) (keys, error) {
	var k keys
	if len(schema) < 1 || len(schema) > 2 {
		return k, invalid("1 validation error detected: Value at 'keySchema' failed to satisfy constraint: " +
			"Member must have length from 1 to 2")
	}
	for n, e := range schema {
		if want := []string{"HASH", "RANGE"}[n]; e.KeyType != want {
			return k, invalid("Invalid KeySchema: element %d must be of KeyType %s", n+1, want)
		}
		if kinds[e.AttributeName] == 0 {
			return k, invalid("One or more parameter values were invalid: Some index key attributes are not defined in "+
				"AttributeDefinitions. Keys: [%s]", e.AttributeName)
		}
		used[e.AttributeName] = true
	}
	k.hash = keyAttribute{schema[0].AttributeName, kinds[schema[0].AttributeName]}
	if len(schema) == 2 {
		if schema[1].AttributeName == k.hash.name {
			return k, invalid("Both the Hash Key and the Range Key element in the KeySchema have the same name")
		}
		k.sort = keyAttribute{schema[1].AttributeName, kinds[schema[1].AttributeName]}
	}
	return k, nil
}

func newIndex(d *indexDefinition, table keys, kinds map[string]kind, used map[string]bool) (*index, error) {
	if err := checkName("IndexName", d.IndexName); err != nil {
		return nil, err
	}
	k, err := keysOf(d.KeySchema, kinds, used)
	if err != nil {
		return nil, err
	}
	i := &index{name: d.IndexName, keys: k}
	kept := slices.Concat(table.attributes(), k.attributes())
	for _, name := range d.Projection.NonKeyAttributes {
		kept = append(kept, keyAttribute{name: name})
	}
	switch include := len(d.Projection.NonKeyAttributes) > 0; d.Projection.ProjectionType {
	case "ALL", "KEYS_ONLY":
		if include {
			return nil, invalid("One or more parameter values were invalid: "+
				"ProjectionType is %s, but NonKeyAttributes is specified", d.Projection.ProjectionType)
		}
	case "INCLUDE":
		if !include {
			return nil, invalid("One or more parameter values were invalid: " +
				"ProjectionType is INCLUDE, but NonKeyAttributes is not specified")
		}
	default:
		return nil, invalid("One or more parameter values were invalid: Unknown ProjectionType: %q",
			d.Projection.ProjectionType)
	}
	if d.Projection.ProjectionType != "ALL" {
		var paths []path
		for _, a := range kept {
			paths = append(paths, path{{name: a.name, index: -1}})
		}
		i.keeps = selectPaths(paths)
	}
	return i, nil
}
