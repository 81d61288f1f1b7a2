//! Tells whether two values are the same to serde, without asking users for `PartialEq`.
//!
//! A value that was written as JSON and read again may be another one: `Some(None)` is `null`, and so
//! is NaN inside of an `Option`. Comparing JSON with JSON does not notice, as both are `null`. So what
//! is compared is a hash of all that a value tells a serializer, variants of `Option` and types of
//! numbers included. Elements of sequences and maps are added up: a `HashMap` that was read again has
//! another order.

use std::{
    convert::identity,
    hash::{DefaultHasher, Hash, Hasher as _},
};

use serde::ser::{self, Serialize};

type Error = serde_json::Error;

/// The same for values that serde cannot tell apart.
pub(super) fn fingerprint<T: Serialize + ?Sized>(value: &T) -> Result<u64, Error> {
    value.serialize(Fingerprinter)
}

fn hash(value: impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}

#[derive(Clone, Copy)]
struct Fingerprinter;

/// The elements of a value so far.
struct Elements {
    kind: u64,
    number: u64,
    sum: u64,
    key: u64,
}

impl Elements {
    #[expect(clippy::unnecessary_wraps, reason = "what a serializer returns")]
    fn new(kind: impl Hash) -> Result<Self, Error> {
        Ok(Self { kind: hash(kind), number: 0, sum: 0, key: 0 })
    }

    fn add<T: Serialize + ?Sized>(&mut self, place: impl Hash, value: &T) -> Result<(), Error> {
        self.number += 1;
        self.sum = self.sum.wrapping_add(hash((place, fingerprint(value)?)));
        Ok(())
    }

    #[expect(clippy::unnecessary_wraps, reason = "what a serializer returns")]
    fn finish(self) -> Result<u64, Error> {
        Ok(hash((self.kind, self.number, self.sum)))
    }
}

macro_rules! scalars {
    ($($method:ident: $type:ty = $value:expr),+ $(,)?) => {
        $(fn $method(self, value: $type) -> Result<u64, Error> {
            Ok(hash((stringify!($method), $value(value))))
        })+
    };
}

impl ser::Serializer for Fingerprinter {
    type Ok = u64;
    type Error = Error;
    type SerializeSeq = Elements;
    type SerializeTuple = Elements;
    type SerializeTupleStruct = Elements;
    type SerializeTupleVariant = Elements;
    type SerializeMap = Elements;
    type SerializeStruct = Elements;
    type SerializeStructVariant = Elements;

    scalars! {
        serialize_bool: bool = u8::from,
        serialize_i8: i8 = i64::from,
        serialize_i16: i16 = i64::from,
        serialize_i32: i32 = i64::from,
        serialize_i64: i64 = identity,
        serialize_i128: i128 = identity,
        serialize_u8: u8 = u64::from,
        serialize_u16: u16 = u64::from,
        serialize_u32: u32 = u64::from,
        serialize_u64: u64 = identity,
        serialize_u128: u128 = identity,
        serialize_f32: f32 = f32::to_bits,
        serialize_f64: f64 = f64::to_bits,
        serialize_char: char = u32::from,
        serialize_str: &str = str::as_bytes,
        serialize_bytes: &[u8] = identity,
        serialize_unit_struct: &'static str = str::as_bytes,
    }

    fn serialize_none(self) -> Result<u64, Error> {
        Ok(hash("none"))
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<u64, Error> {
        Ok(hash(("some", fingerprint(value)?)))
    }

    fn serialize_unit(self) -> Result<u64, Error> {
        Ok(hash("unit"))
    }

    fn serialize_unit_variant(self, _: &str, index: u32, _: &str) -> Result<u64, Error> {
        Ok(hash(("unit variant", index)))
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(
        self,
        _: &str,
        value: &T,
    ) -> Result<u64, Error> {
        fingerprint(value)
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _: &str,
        index: u32,
        _: &str,
        value: &T,
    ) -> Result<u64, Error> {
        Ok(hash(("newtype variant", index, fingerprint(value)?)))
    }

    fn serialize_seq(self, _: Option<usize>) -> Result<Elements, Error> {
        Elements::new("seq")
    }

    fn serialize_tuple(self, _: usize) -> Result<Elements, Error> {
        Elements::new("tuple")
    }

    fn serialize_tuple_struct(self, _: &str, _: usize) -> Result<Elements, Error> {
        Elements::new("tuple struct")
    }

    fn serialize_tuple_variant(
        self,
        _: &str,
        index: u32,
        _: &str,
        _: usize,
    ) -> Result<Elements, Error> {
        Elements::new(("tuple variant", index))
    }

    fn serialize_map(self, _: Option<usize>) -> Result<Elements, Error> {
        Elements::new("map")
    }

    fn serialize_struct(self, _: &str, _: usize) -> Result<Elements, Error> {
        Elements::new("struct")
    }

    fn serialize_struct_variant(
        self,
        _: &str,
        index: u32,
        _: &str,
        _: usize,
    ) -> Result<Elements, Error> {
        Elements::new(("struct variant", index))
    }
}

impl ser::SerializeSeq for Elements {
    type Ok = u64;
    type Error = Error;

    fn serialize_element<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Error> {
        self.add((), value)
    }

    fn end(self) -> Result<u64, Error> {
        self.finish()
    }
}

impl ser::SerializeMap for Elements {
    type Ok = u64;
    type Error = Error;

    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<(), Error> {
        self.key = fingerprint(key)?;
        Ok(())
    }

    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Error> {
        self.add(self.key, value)
    }

    fn end(self) -> Result<u64, Error> {
        self.finish()
    }
}

macro_rules! by_place {
    ($($of:ident::$method:ident),+ $(,)?) => {
        $(impl ser::$of for Elements {
            type Ok = u64;
            type Error = Error;

            fn $method<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Error> {
                self.add(self.number, value)
            }

            fn end(self) -> Result<u64, Error> {
                self.finish()
            }
        })+
    };
}
by_place!(
    SerializeTuple::serialize_element,
    SerializeTupleStruct::serialize_field,
    SerializeTupleVariant::serialize_field,
);

macro_rules! by_name {
    ($($of:ident),+ $(,)?) => {
        $(impl ser::$of for Elements {
            type Ok = u64;
            type Error = Error;

            fn serialize_field<T: Serialize + ?Sized>(
                &mut self,
                name: &'static str,
                value: &T,
            ) -> Result<(), Error> {
                self.add(name, value)
            }

            fn end(self) -> Result<u64, Error> {
                self.finish()
            }
        })+
    };
}
by_name!(SerializeStruct, SerializeStructVariant);
