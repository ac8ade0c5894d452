package datatest

import (
	"encoding/binary"
	"hash/crc32"
)

// Feature is a feature of a tf.train.Example.
type Feature struct {
	name  string
	value []byte // of the Feature
}

// protoBytes is field number as a message or bytes.
func protoBytes(number int, content []byte) []byte {
	b := binary.AppendUvarint(nil, uint64(number<<3|2))
	b = binary.AppendUvarint(b, uint64(len(content)))
	return append(b, content...)
}

// Bytes is a feature of one string.
func Bytes(name, value string) Feature {
	return Feature{name, protoBytes(1, protoBytes(1, []byte(value)))}
}

// Int is a feature of one integer.
func Int(name string, value uint64, packed bool) Feature {
	b := binary.AppendUvarint(nil, value)
	if packed {
		b = protoBytes(1, b)
	} else {
		b = append([]byte{1 << 3}, b...)
	}
	return Feature{name, protoBytes(3, b)}
}

// Record is one record of a TFRecord file.
func Record(features ...Feature) []byte {
	var all []byte
	for _, f := range features {
		all = append(all, protoBytes(1, append(protoBytes(1, []byte(f.name)), protoBytes(2, f.value)...))...)
	}
	content := protoBytes(1, all)
	b := binary.LittleEndian.AppendUint64(nil, uint64(len(content)))
	b = binary.LittleEndian.AppendUint32(b, masked(b))
	b = append(b, content...)
	return binary.LittleEndian.AppendUint32(b, masked(content))
}

// masked is the CRC-32C as TFRecords store it.
func masked(b []byte) uint32 {
	crc := crc32.Checksum(b, crc32.MakeTable(crc32.Castagnoli))
	return crc>>15 | crc<<17 + 0xa282ead8
}
